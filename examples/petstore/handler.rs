// A small REST API: one handler for all of /pets and /pets/{id}. Needs a database bound as "db": SQLite, PostgreSQL or
// MySQL. With Storage::object_storage or Storage::file_storage, the same handler keeps its pets in files.
//
//     curl -d '{"name": "Tom", "kind": "cat"}' http://localhost:8080/pets
//     {"id":"5c9f...","kind":"cat","name":"Tom","tags":[]}
//     curl http://localhost:8080/pets

use rust_edge_gateway_sdk::prelude::*;

/// What clients send. Checked here, so that nothing else gets into the storage.
#[derive(Deserialize, Serialize)]
struct Pet {
    name: String,
    kind: String,
    #[serde(default)]
    tags: Vec<String>,
}

fn pet_of(req: &Request) -> Result<Pet, HandlerError> {
    let pet: Pet = req.json()?;
    if pet.name.trim().is_empty() {
        return Err(HandlerError::ValidationError(
            "name must not be empty".into(),
        ));
    }
    Ok(pet)
}

fn handle(req: Request) -> Result<Response, HandlerError> {
    let pets = Storage::database("db", "pets");
    let missing = |id: &str| HandlerError::NotFoundMessage(format!("no pet {id}"));
    match (req.method.as_str(), req.path_param("id")) {
        ("GET", None) => Ok(Response::ok(pets.list()?)),
        ("POST", None) => Ok(Response::created(pets.create(&pet_of(&req)?)?)),
        ("GET", Some(id)) => pets.get(id)?.map(Response::ok).ok_or_else(|| missing(id)),
        ("PUT", Some(id)) => {
            let updated = pets.update(id, &pet_of(&req)?)?;
            updated.map(Response::ok).ok_or_else(|| missing(id))
        }
        ("DELETE", Some(id)) if pets.delete(id)? => Ok(Response::no_content()),
        ("DELETE", Some(id)) => Err(missing(id)),
        (method, _) => Err(HandlerError::MethodNotAllowed(method.into())),
    }
}

handler_loop_result!(handle);
