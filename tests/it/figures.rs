//! What `list` and `GET /metrics` say of a host that runs: the same numbers, and true ones.

use std::collections::BTreeMap;
use std::process::Command;

use regex::Regex;
use serde_json::{Value, json};

use crate::support::build::built;
use crate::support::host_process::{HostOptions, HostProcess};
use crate::support::parse;

/// A host that answered some calls: `create_card` twice well, `resolve_card` once badly.
fn busy_host(folder: &std::path::Path) -> HostProcess {
    let host = HostProcess::start(&HostOptions::new().arg("--app-dir").arg(folder));
    for _ in 0..2 {
        host.data("feedback-management", "create_card", &json!({"project": "p", "payload": "{}"}));
    }
    let (status, _) =
        host.exec("_core", "feedback-management", "resolve_card", &json!({"id": "none"}));
    assert!(status == 200 || status == 422, "{status}");
    let (status, _) =
        host.exec("_core", "feedback-management", "get_card", &json!({"nonsense": "x"}));
    assert_eq!(status, 400);
    host
}

/// The samples of a page in the text format, by name and sorted labels. Every rule of the format that a scraper
/// minds is checked on the way.
fn samples(page: &str) -> BTreeMap<(String, String), f64> {
    let line = Regex::new(r#"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\S+)$"#).unwrap();
    let label = Regex::new(r#"([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)""#).unwrap();
    let (mut found, mut types) = (BTreeMap::new(), BTreeMap::new());
    let mut current = String::new();
    assert!(page.ends_with('\n') && !page.contains("\n\n") && !page.contains('\r'));
    for text in page.lines() {
        if let Some(comment) = text.strip_prefix("# ") {
            let words: Vec<&str> = comment.splitn(3, ' ').collect();
            match words[0] {
                "HELP" => assert!(words[2].len() > 5 && !types.contains_key(words[1]), "{text}"),
                "TYPE" => {
                    assert!(
                        types.insert(words[1].to_owned(), words[2].to_owned()).is_none(),
                        "{text} twice"
                    );
                    current = words[1].to_owned();
                }
                other => panic!("{other} is no comment of the format"),
            }
            continue;
        }
        let parts = line.captures(text).unwrap_or_else(|| panic!("no sample: {text}"));
        let family = match types[&current].as_str() {
            "histogram" => parts[1]
                .trim_end_matches("_bucket")
                .trim_end_matches("_sum")
                .trim_end_matches("_count")
                .to_owned(),
            "counter" => {
                assert!(parts[1].ends_with("_total"), "{text}");
                parts[1].to_owned()
            }
            // Only a summary has quantiles.
            "summary" => parts[1].trim_end_matches("_sum").trim_end_matches("_count").to_owned(),
            "gauge" => {
                assert!(!text.contains("quantile="), "{text}");
                parts[1].to_owned()
            }
            other => panic!("{other} is no type"),
        };
        assert_eq!(family, current, "a sample stands with its family: {text}");
        let labels = parts.get(2).map_or("", |labels| labels.as_str());
        let mut labels: Vec<String> =
            label.captures_iter(labels).map(|it| format!("{}={}", &it[1], &it[2])).collect();
        labels.sort();
        let key = (parts[1].to_owned(), labels.join(","));
        let value: f64 = parts[3].parse().unwrap_or_else(|_| panic!("no number: {text}"));
        assert!(found.insert(key, value).is_none(), "{text} twice");
    }
    found
}

#[test]
fn the_metrics_are_sound_prometheus_text_with_the_numbers_of_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let host = busy_host(folder.path());
    let url = format!("{}/metrics", host.origin);
    assert_eq!(host.request("GET", &url, "").unwrap().status, 401, "a token is needed");
    assert_eq!(host.request("POST", &format!("{url}?t={}", host.token), "").unwrap().status, 405);
    let head =
        ureq::get(&url).header("Authorization", format!("Bearer {}", host.token)).call().unwrap();
    assert_eq!(head.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    assert_eq!(host.get("/health").text, "{\"ok\":true}");

    let page = host.get("/metrics");
    assert_eq!(page.status, 200);
    assert!(
        !page.text.contains(&host.token) && !page.text.contains(built().udfs.to_str().unwrap())
    );
    let samples = samples(&page.text);
    let of = |name: &str, labels: &str| samples.get(&(name.to_owned(), labels.to_owned())).copied();
    let list = host.get("/api/udfs").json()["data"]["udfs"].clone();
    let list = list.as_array().unwrap();
    assert!(list.len() > 40);
    for udf in list {
        let text = |key: &str| udf[key].as_str().unwrap_or_default();
        let labels = format!(
            "op={},project={},workspace={}",
            text("op"),
            text("project"),
            text("workspace")
        );
        for (name, key) in [
            ("udf_host_op_calls_total", "calls"),
            ("udf_host_op_errors_total", "errors"),
            ("udf_host_op_stuck_calls", "stuck"),
            ("udf_host_op_built_time_seconds", "built_at"),
            ("udf_host_op_open_versions", "versions"),
            ("udf_host_op_open_version_bytes", "version_bytes"),
        ] {
            // The plugins are loading still; what was loaded by the first look stays so.
            if udf[key].is_u64() && of(name, &labels).is_some() {
                assert_eq!(of(name, &labels), udf[key].as_f64(), "{name} {labels}");
            }
        }
        if let Some(p99) = udf["p99_us"].as_f64() {
            let seconds = of(
                "udf_host_op_latency_seconds",
                &format!(
                    "op={},project={},quantile=0.99,workspace={}",
                    text("op"),
                    text("project"),
                    text("workspace")
                ),
            );
            assert!((seconds.unwrap() * 1e6 - p99).abs() < 0.5, "{labels}: {seconds:?} {p99}");
        }
    }
    let card = "op=create_card,project=feedback-management,workspace=_core";
    assert_eq!(of("udf_host_op_calls_total", card), Some(2.0));
    let get = "op=get_card,project=feedback-management,workspace=_core";
    assert_eq!(
        (of("udf_host_op_calls_total", get), of("udf_host_op_errors_total", get)),
        (Some(1.0), Some(1.0))
    );
    let info = samples
        .keys()
        .find(|(name, labels)| name == "udf_host_op_info" && labels.contains("op=create_card"));
    let (_, labels) = info.unwrap();
    for want in ["state=ready", "lane=", "version=0.1.0", "hash="] {
        assert!(labels.contains(want), "{labels}");
    }

    // The histogram: cumulative, and its last bucket is its count.
    let mut buckets: Vec<(f64, f64)> = samples
        .iter()
        .filter(|((name, labels), _)| {
            name == "udf_host_op_duration_seconds_bucket" && labels.contains("op=create_card")
        })
        .map(|((_, labels), value)| {
            let le = labels.split(',').find_map(|label| label.strip_prefix("le=")).unwrap();
            (le.parse().unwrap(), *value)
        })
        .collect();
    buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
    assert!(buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{buckets:?}");
    let last = buckets.last().unwrap();
    assert_eq!((last.0, last.1), (f64::INFINITY, 2.0));
    assert_eq!(of("udf_host_op_duration_seconds_count", card), Some(2.0));
    let sum = of("udf_host_op_duration_seconds_sum", card).unwrap();
    assert!(sum > 0.0 && sum < 120.0, "{sum}");

    assert!(of("udf_host_uptime_seconds", "").unwrap() > 0.0);
    assert_eq!(of("udf_host_calls_in_flight", ""), Some(0.0));
    assert_eq!(of("udf_host_calls_in_flight_limit", ""), Some(256.0));
    assert!(of("udf_host_resident_memory_bytes", "").unwrap() > 1e6);
    let states: f64 = ["ready", "refused", "building"]
        .iter()
        .map(|state| of("udf_host_operations", &format!("state={state}")).unwrap())
        .sum();
    assert_eq!(states as usize, list.len());
}

fn list(arguments: &[&str], env: &[(&str, &str)]) -> (Option<i32>, String, String) {
    let mut command = Command::new(&built().host);
    command.args(["list", "--only", "--udfs"]).arg(&built().udfs).args(arguments);
    command.env("XDG_CACHE_HOME", &built().cache).envs(env.iter().copied());
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn list_shows_a_running_host_by_origin_variable_or_handshake_file() {
    let folder = tempfile::tempdir().unwrap();
    let host = busy_host(&folder.path().join("store"));
    let handshake = folder.path().join("handshake.json");
    let line = json!({"origin": host.origin, "port": host.port(), "token": host.token, "pid": 1});
    crate::support::fixture::write(&handshake, format!("{line}\n").as_bytes());
    let file = handshake.to_str().unwrap();
    let env = [("UDF_HOST_ORIGIN", &*host.origin), ("UDF_HOST_TOKEN", &*host.token)];
    for (arguments, env) in [
        (vec!["--host", &host.origin, "--token", &host.token], &[][..]),
        (vec!["--host", file], &[]),
        (vec![], &env[..]),
    ] {
        let (code, text, errors) = list(&arguments, env);
        assert_eq!(code, Some(0), "{errors}");
        let heading: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
        assert_eq!(
            heading,
            [
                "OPERATION",
                "STATE",
                "LANE",
                "CALLS",
                "ERRORS",
                "P50",
                "P99",
                "OPEN",
                "VERSION",
                "BUILT",
                "HASH",
                "ABOUT"
            ]
        );
        let row = text
            .lines()
            .find(|line| line.starts_with("_core.feedback-management.get_card "))
            .unwrap();
        let cells: Vec<&str> =
            row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        assert_eq!((cells[1], cells[3], cells[4]), ("ready", "1", "1"), "{row}");
        assert!(cells[5].ends_with('s') && cells[6].ends_with('s') && cells[8] == "0.1.0", "{row}");
    }
    let (_, json, _) = list(&["--json", "--host", file], &[]);
    let listed: Value = parse(&json);
    let api = host.get("/api/udfs").json()["data"].clone();
    assert_eq!(listed["udfs"].as_array().unwrap().len(), api["udfs"].as_array().unwrap().len());
    assert!(
        listed["udfs"]
            .as_array()
            .unwrap()
            .iter()
            .any(|udf| udf["op"] == "create_card" && udf["calls"] == 2)
    );

    // Without a host the numbers of calls would all be zero, so they are not shown.
    let (code, text, _) = list(&[], &[]);
    assert_eq!(code, Some(0));
    assert!(
        !text.contains("CALLS") && text.contains("_core.feedback-management.get_card"),
        "{text}"
    );
    for (arguments, want) in [
        (["--host", &*host.origin, "--token", "wrong"], "does not know this token"),
        (["--host", "http://127.0.0.1:1", "--token", "t"], "cannot reach the host"),
        (["--host", "nothing.json", "--token", "t"], "nor a file with its first line"),
    ] {
        let (code, _, errors) = list(&arguments, &[]);
        assert!(code != Some(0) && errors.contains(want), "{arguments:?}: {code:?} {errors}");
    }
}
