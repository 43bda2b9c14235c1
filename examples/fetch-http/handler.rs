// GET /rates/{base}?in=CHF,DKK: exchange rates from another API. Needs an http service bound as "rates".
//
//     curl http://localhost:8080/rates/EUR?in=CHF,DKK
//     {"base":"EUR","rates":{"CHF":0.95,"DKK":7.46}}

use rust_edge_gateway_sdk::prelude::*;
use std::collections::BTreeMap;

fn handle(req: Request) -> Result<Response, HandlerError> {
    let base: String = req.require_path_param("base")?;
    let wanted: String = req.require_query_param("in")?;
    let request = HttpRequest::get("/rates")
        .query("from", &base)
        .query("to", &wanted);
    let answer = HttpPool::new("rates").send(&request)?.error_for_status()?;
    let rates: BTreeMap<String, f64> = answer.json()?;
    Ok(Response::ok(json!({"base": base, "rates": rates})))
}

handler_loop_result!(handle);
