use mcp_sansio_handlers::Call;
use mcp_sansio_handlers::extension::{ExtensionMethod, Extension};

const ID: &str = "com.example/greetings";
const GREET: ExtensionMethod<Person, Greeting> = ExtensionMethod::new(ID, "greetings/greet");

#[derive(serde::Deserialize, serde::Serialize)]
struct Person {
    name: String,
}

#[derive(serde::Deserialize, serde::Serialize)]
struct Greeting {
    text: String,
}

fn main() {
    let extension = Extension::new(ID).unwrap();
    let extension = extension.request(&GREET, |call: Call<Person>| call.arguments.name);
    let _server = mcp_sansio_handlers::Server::new("demo", "1.0.0").extension(extension);
}
