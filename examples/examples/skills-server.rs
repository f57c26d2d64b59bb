//! A server of the skills in a folder. It reads the folder again when its tool `reload` is called.

use mcp_sansio_tokio::skills::{ServedSkills, SkillFolder};
use mcp_sansio_tokio::{
    self as mcp, Call, Connections, HandlerError, NoArguments, Server, blocking,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: skills-server FOLDER")?;
    let folder = SkillFolder::new(path);
    let skills = ServedSkills::new(folder.read()?);
    let connections = Connections::new();

    let (served, everyone) = (skills.clone(), connections.clone());
    let reload = move |_: Call<NoArguments>| {
        let changes = served.replace(folder.read()?);
        served.announce(&changes, &everyone)?;
        Ok::<_, HandlerError>(format!("{} skills", served.set().len()))
    };
    let server = skills.register(Server::new("skills-server", "1.0.0").subscriptions()).tool(
        "reload",
        "Reads the folder of skills again",
        blocking(reload),
    );
    Ok(mcp::serve_stdio(server.connections(&connections)).await?)
}
