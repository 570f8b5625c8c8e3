//! The two adapters against services that speak as the real ones do: in order, overloaded, broken off, and away.

use std::process::Output;

use serde_json::{Value, json};

use crate::support::agent::Bench;
use crate::support::parse;
use crate::support::scripted_server::{Act, Asked, ScriptedServer};

const KEY: &str = "sk-never-shown";

/// A command's environment for this service.
fn bench(kind: &str, service: &ScriptedServer) -> Bench {
    let base = match kind {
        "openai" => format!("{}/v1", service.origin),
        _ => service.origin.clone(),
    };
    Bench::new(None)
        .env("UDF_HOST_LLM_PROVIDER", kind)
        .env("UDF_HOST_LLM_BASE_URL", &base)
        .env("UDF_HOST_LLM_MODEL", "m-1")
        .env("UDF_HOST_LLM_KEY", KEY)
}

/// A whole reply of a service: what it says is the text.
fn reply(kind: &str, text: &str) -> Act {
    let body = match kind {
        "openai" => json!({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1_767_225_600, "model": "m-1",
            "choices": [{
                "index": 0, "finish_reason": "stop", "logprobs": null,
                "message": {"role": "assistant", "content": text, "refusal": null},
            }],
            "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
        }),
        _ => json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m-1",
            "content": [
                {"type": "thinking", "thinking": "what to do", "signature": "c2ln"},
                {"type": "text", "text": text},
            ],
            "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {"input_tokens": 11, "output_tokens": 7},
        }),
    };
    Act::Answer(200, vec![("Content-Type", "application/json".to_owned())], body.to_string())
}

/// A complaint of a service, to be heeded at once.
fn complaint(kind: &str, status: u16) -> Act {
    let body = match kind {
        "openai" => json!({"error": {
            "message": "Rate limit reached", "type": "requests", "param": null, "code": "rate_limit_exceeded",
        }}),
        _ => {
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
        }
    };
    Act::Answer(status, vec![("Retry-After", "0".to_owned())], body.to_string())
}

fn act(name: &str, parameters: Value) -> String {
    json!({"reasoning": "r", "actions": [{"action_name": name, "parameters": parameters}]})
        .to_string()
}

fn end() -> String {
    act("task_end", json!({"status": "complete", "summary": "done"}))
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Every file below a folder, as text.
fn whole(folder: &std::path::Path) -> String {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| match path.is_dir() {
            true => whole(&path),
            false => String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned(),
        })
        .collect()
}

#[test]
fn both_services_are_spoken_to_in_their_own_words() {
    for kind in ["openai", "anthropic"] {
        let service = ScriptedServer::start(move |asked: &Asked, _| {
            match asked.body.contains("action_end send_message") {
                true => reply(kind, &end()),
                false => reply(kind, &act("send_message", json!({"message": "Hello."}))),
            }
        });
        let bench = bench(kind, &service);
        let ended = bench.json(&["agent", "run", "--request", "Greet", "--json"]);
        assert_eq!(ended["status"], "complete", "{kind}: {ended}");
        assert_eq!(bench.stored("comments")[0]["body"], "Hello.");
        let asked = service.asked();
        assert_eq!(asked.len(), 2, "{kind}");
        let body = asked[1].json();
        let messages = body["messages"].as_array().unwrap();
        let roles: Vec<&Value> = messages.iter().map(|message| &message["role"]).collect();
        assert_eq!(body["model"], "m-1");
        assert_eq!(
            (asked[1].method.as_str(), asked[1].header("content-type")),
            ("POST", "application/json")
        );
        match kind {
            "openai" => {
                assert_eq!(asked[1].path, "/v1/chat/completions");
                assert_eq!(asked[1].header("authorization"), format!("Bearer {KEY}"));
                assert_eq!(roles, ["system", "user", "assistant", "user"]);
                assert!(messages[0]["content"].as_str().unwrap().contains("You are an agent"));
            }
            _ => {
                assert_eq!(asked[1].path, "/v1/messages");
                assert_eq!(asked[1].header("x-api-key"), KEY);
                assert_eq!(asked[1].header("anthropic-version"), "2023-06-01");
                assert_eq!(asked[1].header("authorization"), "");
                assert_eq!(roles, ["user", "assistant", "user"]);
                assert!(body["system"].as_str().unwrap().contains("You are an agent"));
                assert!(body["max_tokens"].as_u64().unwrap() > 0);
            }
        }
    }
}

#[test]
fn a_service_that_is_overloaded_breaks_off_or_hangs_is_asked_again() {
    for kind in ["openai", "anthropic"] {
        let overloaded = if kind == "openai" { 500 } else { 529 };
        let service = ScriptedServer::start(move |_, before| match before {
            0 => complaint(kind, 429),
            1 => complaint(kind, overloaded),
            2 => Act::Bytes("HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{\"id\"".to_owned()),
            3 => reply(kind, &act("send_message", json!({"message": "Hello."}))),
            4 => Act::Hang,
            5 => Act::Answer(200, vec![], "<html>a proxy speaks</html>".to_owned()),
            6 => Act::Answer(200, vec![], "{\"unlike\": \"anything\"}".to_owned()),
            _ => reply(kind, &end()),
        });
        let bench = bench(kind, &service).env("UDF_HOST_LLM_TIMEOUT", "2");
        let output = bench.run(&["agent", "run", "--request", "Greet", "--json"]);
        assert!(output.status.success(), "{kind}: {}", said(&output));
        assert_eq!(parse(&String::from_utf8_lossy(&output.stdout))["status"], "complete");
        assert_eq!(service.asked().len(), 8, "{kind}");
        let bodies: Vec<String> = service.asked().iter().map(|asked| asked.body.clone()).collect();
        assert!(bodies[..4].iter().all(|body| *body == bodies[0]), "the same request again");
    }
}

#[test]
fn an_outage_opens_the_breaker_and_nobody_is_asked_until_it_is_over() {
    let service = ScriptedServer::start(|_, _| complaint("openai", 503));
    let bench = bench("openai", &service);
    // A plain task parks, and its timer alone lets it go on.
    let parked = bench.json(&["agent", "run", "--request", "Greet", "--json"]);
    assert_eq!(parked["parked"]["why"], "provider", "{parked}");
    assert_eq!(service.asked().len(), 12, "three attempts of four requests each");
    bench.json(&["agent", "resume", "--json"]);
    assert_eq!(service.asked().len(), 12);
    // The worker of a workflow: a pause without a round spent, and a card. What the breaker knows is known at once.
    let words = ["agent", "run", "--workflow", "report_writing", "--request", "On tea", "--json"];
    let paused = bench.json(&words);
    assert_eq!((&paused["parked"]["why"], &paused["status"]), (&json!("user"), &json!("running")));
    assert_eq!(service.asked().len(), 24);
    let state = bench.state(paused["task"].as_str().unwrap());
    assert_eq!((&state["infra_blocked"], &state["rounds"]), (&json!(true), &json!(0)));
    assert_eq!((&state["check_attempts"], &state["pending_round"]), (&json!(0), &json!(false)));
    assert_eq!(bench.stored("cards").len(), 1);
}

#[test]
fn a_refusal_is_final_and_shows_no_key() {
    for (kind, status, body) in [
        (
            "openai",
            401,
            json!({"error": {"message": format!("Incorrect API key provided: {KEY}"), "code": "invalid_api_key"}}),
        ),
        (
            "anthropic",
            400,
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": format!("no model for {KEY}")}}),
        ),
    ] {
        let body = body.to_string();
        let service = ScriptedServer::start(move |_, _| Act::Answer(status, vec![], body.clone()));
        let bench = bench(kind, &service);
        let output = bench.run(&["agent", "run", "--request", "Greet"]);
        assert!(output.status.success(), "it waits: {}", said(&output));
        assert!(said(&output).contains(&format!("status {status}")), "{}", said(&output));
        assert_eq!(service.asked().len(), 1, "asking again does not help");
        assert!(!said(&output).contains(KEY) && !whole(bench.folder.path()).contains(KEY));
    }
}

#[test]
fn a_key_goes_nowhere_but_to_its_service() {
    for kind in ["openai", "anthropic"] {
        let elsewhere = ScriptedServer::start(move |_, _| reply(kind, &end()));
        let to = elsewhere.origin.clone();
        let service = ScriptedServer::start(move |_, _| {
            Act::Answer(307, vec![("Location", format!("{to}/v1/messages"))], String::new())
        });
        let bench = bench(kind, &service);
        let parked = bench.json(&["agent", "run", "--request", "Greet", "--json"]);
        assert_eq!(parked["parked"]["why"], "provider", "{parked}");
        assert!(parked["parked"]["note"].as_str().unwrap().contains("leads elsewhere"), "{parked}");
        assert_eq!((service.asked().len(), elsewhere.asked().len()), (1, 0));
    }
}
