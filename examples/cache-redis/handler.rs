// GET /primes/{limit}: counts the primes below a limit, and remembers the result for a minute. Needs a Redis service
// bound as "cache".
//
//     curl http://localhost:8080/primes/1000000
//     {"cached":false,"primes":78498}

use rust_edge_gateway_sdk::prelude::*;

const SECONDS: u64 = 60;

fn count_primes(limit: usize) -> usize {
    let mut is_prime = vec![true; limit];
    let mut count = 0;
    for n in 2..limit {
        if is_prime[n] {
            count += 1;
            (n * n..limit)
                .step_by(n)
                .for_each(|multiple| is_prime[multiple] = false);
        }
    }
    count
}

fn handle(req: Request) -> Result<Response, HandlerError> {
    let limit: usize = req.require_path_param("limit")?;
    if limit > 10_000_000 {
        return Err(HandlerError::ValidationError(
            "limit must be at most 10000000".into(),
        ));
    }
    let redis = RedisPool::new("cache");
    let key = format!("primes:{limit}");
    if let Some(primes) = redis.get(&key)?.and_then(|text| text.parse::<usize>().ok()) {
        return Ok(Response::ok(json!({"primes": primes, "cached": true})));
    }
    let primes = count_primes(limit);
    redis.setex(&key, primes.to_string(), SECONDS)?;
    Ok(Response::ok(json!({"primes": primes, "cached": false})))
}

handler_loop_result!(handle);
