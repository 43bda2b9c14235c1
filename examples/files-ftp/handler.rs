// POST /exports/{name}: writes rows as a CSV file to a partner's server. Needs an FTP service bound as "partner".
//
//     curl -d '[["item", "pieces"], ["tea", "2"]]' http://localhost:8080/exports/january
//     {"files":["january.csv"],"path":"exports/january.csv","size":20}

use rust_edge_gateway_sdk::prelude::*;

/// RFC 4180: quotes where needed, doubled inside.
fn field(text: &str) -> String {
    match text.contains(['"', ',', '\r', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}

fn handle(req: Request) -> Result<Response, HandlerError> {
    let name: String = req.require_path_param("name")?;
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        return Err(HandlerError::ValidationError(
            "name may have letters, digits and -".into(),
        ));
    }
    let rows: Vec<Vec<String>> = req.json()?;
    let line = |row: &Vec<String>| {
        let fields: Vec<String> = row.iter().map(|text| field(text)).collect();
        fields.join(",") + "\r\n"
    };
    let csv: String = rows.iter().map(line).collect();
    let ftp = FtpPool::new("partner");
    let path = format!("exports/{name}.csv");
    // Appears under its name when all of it has arrived.
    let size = ftp.put(&path, csv)?;
    let files: Vec<String> = ftp
        .list("exports")?
        .into_iter()
        .map(|file| file.name)
        .collect();
    Ok(Response::created(
        json!({"path": path, "size": size, "files": files}),
    ))
}

handler_loop_result!(handle);
