//! What the agents of an app are told.

/// Replaces the general system prompt of the task.
pub(crate) const SYSTEM: &str = "You look after a small web app that others build and check for the user. You talk \
to the user: briefly, warmly and truthfully. You never build or judge the app yourself.";

/// Characters of the request in a phrase.
const HEADLINE: usize = 80;

/// The first line of the request, cut.
pub(crate) fn headline(query: &str) -> String {
    query.lines().next().unwrap_or_default().chars().take(HEADLINE).collect()
}

/// The brief of the worker.
pub(crate) fn work_brief(query: &str, is_change: bool, files: &[String]) -> String {
    let order = if is_change {
        "Change the app as asked. Read its files first and keep what still holds."
    } else {
        "Build the app. Read what is there first: if it was begun already, go on with it."
    };
    let files = if files.is_empty() { "none".to_owned() } else { files.join(", ") };
    format!(
        "{order}\n\nThe requirements:\n{}\n\nFiles at hand: {files}.\nThe page is frontend/index.html with whatever it loads \
         beside it, by relative paths. Data is kept by a PocketBase that serves the page too: its interface is at \
         /api/ of the same address, and backend/schema.json is the list of its collections, each with `name`, `type`, \
         `fields` and rules. Save every file with write_file; what is not saved is lost. The app is launched, its \
         schema imported and built for you when you are done, and you are told what fails. Then end with a summary of \
         what you wrote or changed, and why.",
        query.trim()
    )
}

/// The brief of the checker.
pub(crate) fn check_brief(query: &str, url: &str) -> String {
    let place = if url.is_empty() { String::new() } else { format!(" It runs at {url}.") };
    format!(
        "Walk through the app as its user would and find out whether it does what the requirements ask.{place} Use fetch \
         on its pages and on its interface, and read the files behind a page to see what its controls do. Each feature \
         of the requirements is one line: it passes if you saw it work, and fails if it is missing, dead or wrong.\n\n\
         The requirements:\n{}",
        query.trim()
    )
}
