// POST /pets and PUT /pets/{id}: both take a pet, so one handler checks it. bundle.yaml names it for the two routes.
// Needs a database bound as "db", as the other handlers do: SQLite, PostgreSQL or MySQL. With Storage::object_storage
// or Storage::file_storage, the same handlers keep their pets in files.
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
    let pet = pet_of(&req)?;
    let Some(id) = req.path_param("id") else {
        return Ok(Response::created(pets.add(&pet)?));
    };
    let updated = pets.replace(id, &pet)?;
    updated
        .map(Response::ok)
        .ok_or_else(|| HandlerError::NotFoundMessage(format!("no pet {id}")))
}

handler_loop_result!(handle);
