//! `delete_project`: drops a project's cards. Contract and examples: `spec.md`.

use sdk::prelude::*;

/// Removes all cards of a project, in any state, and tells how many. Tasks, comments and dismissed keys
/// stay. A blank name removes nothing and takes no lock.
#[udf(reads("cards"), writes("cards"))]
fn delete_project(
    ctx: &Context,
    /// Exact name of the project, spaces included.
    #[arg(default)]
    project: &str,
) -> Result<Reply, UdfError> {
    let mut removed = 0;
    if !text::is_blank(project) {
        let tx = ctx.begin(&["cards"])?;
        let mut cards = tx.collection("cards")?;
        cards.make_list();
        removed = cards.remove_matching("project", project);
        tx.commit()?;
    }
    Ok(Reply::json(Object::new().set("cardsRemoved", removed)))
}
