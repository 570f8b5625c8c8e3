//! The tunnel of a running app: a configured command, and the public address it prints.

use std::thread;
use std::time::Instant;

use sdk::prelude::*;

use crate::app::{App, url};
use crate::output;
use crate::process::LOOK;
use crate::serving::Serving;
use crate::settings::filled;

/// Runs the command for as long as the app with this process id and start time lives, whoever ends it and whether
/// or not a host is there to see it.
const WATCH: &str = r#"
app=$1 ticks=$2; shift 2
"$@" & child=$!
trap 'kill "$child" 2>/dev/null; exit 143' TERM
while kill -0 "$child" 2>/dev/null; do
    line=
    read -r line <"/proc/$app/stat" 2>/dev/null
    [ -n "$line" ] || break
    set -- ${line##*) }
    [ "${20}" = "$ticks" ] || break
    case $1 in Z|X) break ;; esac
    sleep 1
done
kill "$child" 2>/dev/null
wait "$child"
"#;

/// Starts the tunnel of an app that is served, unless it runs already; gives its address. `None` if no tunnel is
/// configured.
///
/// # Errors
/// The app is not served, or the command gives no address; in words, with what it printed.
pub(crate) fn open(app: &App<'_>) -> Result<Option<String>, UdfError> {
    let settings = app.settings()?;
    let Some(tunnel) = settings.tunnel else { return Ok(None) };
    let mut serving = Serving::lock(app, tunnel.within)?;
    if let Some(address) = app.public_address()? {
        return Ok(Some(address));
    }
    let served =
        app.served()?.ok_or_else(|| UdfError::raised("the app is not served: launch it first"))?;
    let pid =
        served.pid.ok_or_else(|| UdfError::raised("the app has no process id yet: try again"))?;
    serving.end("tunnel")?;
    let port = served.port.to_string();
    let command =
        filled(&tunnel.command, &[("url", &url(served.port)), ("port", &port), ("name", &app.id)]);
    let (pid, ticks) = (pid.to_string(), served.started().to_string());
    let mut argv: Vec<String> =
        ["sh", "-c", WATCH, "tunnel", &pid, &ticks].map(str::to_owned).into();
    argv.extend(command.iter().cloned());
    let started = serving
        .start("tunnel", served.port, &argv, &settings.env, settings.lease)
        .map_err(UdfError::raised)?;
    let (_, log) = serving.paths("tunnel")?;
    let until = Instant::now() + tunnel.within;
    let headline = loop {
        if let Some(address) = address(&output::read(&log), &tunnel.contains) {
            serving.addressed(&started, &address)?;
            return Ok(Some(address));
        }
        if !started.is_running() {
            break format!("the tunnel `{}` ended without an address", command[0]);
        }
        if Instant::now() >= until || app.ctx.cancelled() {
            break format!(
                "the tunnel `{}` gave no address within {} s",
                command[0],
                tunnel.within.as_secs()
            );
        }
        thread::sleep(LOOK);
    };
    serving.end("tunnel")?;
    Err(UdfError::raised(output::failure(headline, &log, "tunnel").join("\n")))
}

/// The first address with this in it that is not of this machine, once its line is whole.
fn address(text: &str, contains: &str) -> Option<String> {
    let whole = &text[..=text.rfind('\n')?];
    let ends = |c: char| {
        c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | '|' | ')' | ']' | '\u{1b}')
    };
    ["https://", "http://"].iter().find_map(|scheme| {
        whole.match_indices(scheme).find_map(|(at, _)| {
            let rest = &whole[at..];
            let found =
                rest[..rest.find(ends).unwrap_or(rest.len())].trim_end_matches(['.', ',', ';']);
            let host = &found[scheme.len()..];
            let here = ["127.", "localhost", "[::1]", "0.0.0.0"];
            (!host.is_empty()
                && !here.iter().any(|name| host.starts_with(name))
                && found.contains(contains))
            .then(|| found.to_owned())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_among_the_noise() {
        let log = "INF see https://developers.example/docs.\nINF origin http://127.0.0.1:9\n\
                   |  https://cool-name.try.example  |\n";
        assert_eq!(address(log, "try.example").as_deref(), Some("https://cool-name.try.example"));
        assert_eq!(address(log, "").as_deref(), Some("https://developers.example/docs"));
        assert_eq!(
            address("url=\"http://x.example\" ok\n", "").as_deref(),
            Some("http://x.example")
        );
        assert_eq!(address("https://cool-na", ""), None, "the line is not whole yet");
        assert_eq!(address("http://localhost:1/ https://\n", ""), None);
    }
}
