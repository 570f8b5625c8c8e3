use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use sdk::testing::TestHost;
use sdk::{HttpReply, HttpRequest};

use super::*;
use crate::process::{LOOK, Process};

const TASK: &str = r#"{"id": "t1", "query": "A habit tracker"}"#;
const STATE: &str = "workflows/living_ui_creation/t1";

/// The program that serves in these tests: this test binary itself, told by its environment how to behave.
#[test]
#[ignore = "a program for the other tests"]
fn stand_in() {
    let port = std::env::var("PORT").unwrap().parse().unwrap();
    let status = std::env::var("STATUS").unwrap_or("200 OK".into());
    let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, port)).unwrap();
    println!("listening on {port}");
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let (mut request, mut chunk) = (Vec::new(), [0; 2048]);
        while !request.windows(4).any(|window| window == b"\r\n\r\n") {
            match stream.read(&mut chunk) {
                Ok(read @ 1..) => request.extend_from_slice(&chunk[..read]),
                _ => break,
            }
        }
        let text = String::from_utf8_lossy(&request);
        if let Some(path) = text.lines().next() {
            let reply =
                format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{path}", path.len());
            let _gone = stream.write_all(reply.as_bytes());
        }
    }
}

fn served() -> Value {
    let program = std::env::current_exe().unwrap();
    json!({"command": [program.to_str().unwrap(), "--ignored", "--exact", "tests::stand_in", "--nocapture"]})
}

/// A state folder whose programs are ended with it.
struct Bench(TestHost);

impl Drop for Bench {
    fn drop(&mut self) {
        for app in ["t1", "t2"] {
            for program in ["serve", "tunnel"] {
                let record = self.0.file(&format!("living-ui/apps/{app}/run/{program}.json"));
                if let Some(process) = record.as_deref().and_then(Process::read) {
                    process.end();
                }
            }
        }
    }
}

impl Bench {
    fn new(settings: Value) -> Self {
        let bench = Self(TestHost::new());
        bench.0.answer_http(sent);
        bench.configure(settings);
        bench
    }

    fn configure(&self, mut settings: Value) {
        if settings.get("serve").is_none() {
            settings["serve"] = served();
        }
        if settings.get("schema").is_none() {
            settings["schema"] = Value::Null;
        }
        self.call("configure", &[("arguments", &settings.to_string())]);
    }

    #[track_caller]
    fn call(&self, call: &str, more: &[(&str, &str)]) -> Value {
        self.try_call(call, more).unwrap_or_else(|error| panic!("{call}: {error}"))
    }

    fn try_call(&self, call: &str, more: &[(&str, &str)]) -> Result<Value, UdfError> {
        let mut params = vec![("call", call)];
        if !more.iter().any(|(name, _)| *name == "task") {
            params.push(("task", TASK));
        }
        params.extend(more);
        Ok(self.0.call(UDF, &params)?.to_json()?.parse().unwrap())
    }

    fn record(&self, recorder: &str, arguments: Value) {
        self.call(recorder, &[("state_dir", STATE), ("arguments", &arguments.to_string())]);
    }

    fn write(&self, path: &str, text: &str) {
        self.call("write_file", &[("state_dir", STATE), ("path", path), ("text", text)]);
    }

    /// The outcome of a launch that fails at this step.
    #[track_caller]
    fn fails(&self, step: &str) -> Vec<String> {
        let outcome = self.call("living_ui_validate", &[]);
        assert_eq!(
            (&outcome["status"], &outcome["step"]),
            (&json!("error"), &json!(step)),
            "{outcome}"
        );
        let errors = outcome["errors"].as_array().unwrap().iter();
        errors.map(|error| error.as_str().unwrap().to_owned()).collect()
    }

    fn process(&self, name: &str) -> Process {
        Process::read(&self.0.file(&format!("living-ui/apps/t1/run/{name}.json")).unwrap()).unwrap()
    }
}

/// Sends a request as a host does.
fn sent(request: &HttpRequest) -> Result<HttpReply, UdfError> {
    let failed = |error: std::io::Error| UdfError::raised(error.to_string());
    let (authority, path) = request.url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(authority).map_err(failed)?;
    let text = format!("{} /{path} HTTP/1.1\r\nHost: {authority}\r\n\r\n", request.method);
    stream.write_all(text.as_bytes()).map_err(failed)?;
    let mut text = String::new();
    stream.read_to_string(&mut text).map_err(failed)?;
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Ok(HttpReply { status, headers: Vec::new(), body: body.as_bytes().to_vec() })
}

fn url(port: &Value) -> String {
    format!("http://127.0.0.1:{port}")
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < until, "{what}");
        thread::sleep(LOOK);
    }
}

/// Flow A of the contract with the app's own calls: build, launch, FAIL, a second round that fails at a step, PASS.
#[test]
fn an_app_is_built_launched_checked_put_right_and_handed_over() {
    let bench = Bench::new(
        json!({"build": {"command": ["sh", "-c", "! grep -n Chart frontend/index.html"]},
        "tunnel": {"command": ["sh", "-c", "echo 'origin {url}'; echo 'at https://tidy.try.example'; exec sleep 300"], "contains": "try.example"}}),
    );
    let step = |stage: &str, round: u64| {
        let step = bench.call("step", &[]);
        assert_eq!((&step["stage"], &step["round"]), (&json!(stage), &json!(round)), "{step}");
        step["step"].clone()
    };
    let query =
        |step: &Value| step["actions"][0]["parameters"]["query"].as_str().unwrap().to_owned();
    let staged =
        |outcome: Value| bench.record("record_validate_outcome", json!({"result": outcome}));
    let ended = |agent: &str, result: &str| {
        bench.record(
            "record_outcome",
            json!({"agent": agent, "status": "completed", "result": result}),
        );
    };

    let first = step("bootstrap", 1);
    assert_eq!(first["actions"][0]["parameters"]["agent_type"], "coding_agent");
    assert!(
        query(&first).contains("A habit tracker") && query(&first).contains("docs/requirements.md")
    );
    assert_eq!(
        bench.call("app_problems", &[]),
        json!(["frontend/index.html is still the empty page"])
    );
    bench.write("frontend/index.html", "<p>habits</p>");
    assert_eq!(bench.call("app_problems", &[]), json!([]));
    ended("coding_agent", "built three screens");
    assert_eq!(step("work_round", 1)["actions"][0]["action_name"], VALIDATE);
    let outcome = bench.call("living_ui_validate", &[]);
    assert_eq!(
        (&outcome["status"], &outcome["steps"]),
        (&json!("success"), &json!(["serve", "build", "health"]))
    );
    staged(outcome.clone());
    let check = step("check", 1);
    assert!(
        query(&check).contains(outcome["url"].as_str().unwrap())
            && query(&check).contains("VERDICT")
    );
    let fetched = bench.call("fetch", &[("path", "/x?y=1")]);
    assert_eq!(
        (&fetched["status"], &fetched["body"]),
        (&json!(200), &json!("GET /x?y=1 HTTP/1.1"))
    );
    ended("walk_verify", "VERDICT: FAIL\n- Add habit — PASS\n- Export — FAIL — click does nothing");

    let second = step("work_round", 2);
    assert!(
        query(&second).contains("click does nothing") && query(&second).contains("ALREADY TRIED")
    );
    bench.write("frontend/index.html", "<p>habits</p><script>new Chart()</script>");
    ended("coding_agent", "rewired export");
    step("work_round", 2);
    let outcome = bench.call("living_ui_validate", &[]);
    assert_eq!((&outcome["step"], &outcome["steps"]), (&json!("build"), &json!(["serve"])));
    staged(outcome);
    let third = query(&step("work_round", 3));
    assert!(
        third.contains("failed at build") && third.contains("1:<p>habits</p><script>new Chart()"),
        "{third}"
    );
    bench.write("frontend/index.html", "<p>habits, exported</p>");
    ended("coding_agent", "removed the chart");
    step("work_round", 3);
    staged(bench.call("living_ui_validate", &[]));
    let refused = bench.try_call("living_ui_notify_ready", &[]).unwrap_err();
    assert!(refused.message().contains("not verified"));
    assert_eq!(bench.call("task_end_gate", &[])["allowed"], false);
    step("check", 3);
    ended("walk_verify", "VERDICT: PASS\n- Add habit — PASS\n- Export — PASS");

    assert_eq!(step("finish", 3)["actions"][0]["action_name"], NOTIFY);
    let told = bench.call("living_ui_notify_ready", &[]);
    assert_eq!(told["public_url"], "https://tidy.try.example");
    let shown = step("finish", 3);
    assert!(shown["prompt"].as_str().unwrap().contains("https://tidy.try.example"));
    assert_eq!(bench.call("task_end_gate", &[])["allowed"], true);
    let status = bench.call("status", &[]);
    assert_eq!(
        (&status["validated"], &status["running"], &status["owner"]),
        (&json!(true), &json!(true), &json!("t1"))
    );
    assert_ne!(status["ready_at"], "");

    // It is the user's now: a start without running tasks leaves it, `stop` ends it and its tunnel.
    bench.call("task_ended", &[("arguments", r#"{"status": "complete"}"#)]);
    assert_eq!(
        bench.call("boot_restore", &[("arguments", r#"{"running": []}"#)]),
        json!({"ghosts": []})
    );
    let (app, tunnel) = (bench.process("serve"), bench.process("tunnel"));
    assert!(app.is_running() && tunnel.is_running());
    assert_eq!(bench.call("stop", &[]), json!({"ok": true, "ran": true}));
    assert!(!app.is_running() && !tunnel.is_running());
    assert_eq!(bench.call("stop", &[]), json!({"ok": true, "ran": false}));

    // Whoever writes to a verified app makes it unverified; documents are no part of it.
    bench.write("docs/notes.md", "x");
    assert_eq!(bench.call("task_end_gate", &[])["allowed"], true);
    bench.write("backend/schema.json", "[]");
    assert_eq!(bench.call("task_end_gate", &[])["allowed"], false);
    let journal = bench.call("journal", &[]);
    assert!(
        journal
            .as_array()
            .unwrap()
            .iter()
            .any(|line| line["event"] == "invalidated" && line["area"] == "backend")
    );
    assert!(
        bench
            .0
            .file(&format!("{STATE}/reference/briefs/.fixlog/VALIDATE.md"))
            .unwrap()
            .contains("## Attempt 3")
    );
}

#[test]
fn every_step_that_fails_says_what_it_printed() {
    let sh = |script: &str| json!({"command": ["sh", "-c", script]});
    let bench = Bench::new(json!({}));
    for (settings, step, want) in [
        (json!({"serve": sh("echo no such database >&2; exit 3")}), "serve", "no such database"),
        (json!({"serve": {"command": ["no-such-program"]}}), "serve", "no-such-program"),
        (json!({"serve": {"command": ["sleep", "300"], "seconds": 1}}), "serve", "did not listen"),
        (
            json!({"types": sh("echo TS2304 cannot find name Chart; exit 2")}),
            "types",
            "TS2304 cannot find name Chart",
        ),
        (json!({"build": sh("echo out; echo err >&2; kill -9 $$")}), "build", "err"),
        (
            json!({"build": {"command": ["sh", "-c", "(sleep 300 & sleep 300)"], "seconds": 1}}),
            "build",
            "longer than 1 s",
        ),
        (json!({"health": {"command": ["sh", "-c", "echo sick; exit 1"]}}), "health", "sick"),
        (
            json!({"env": {"STATUS": "500 Broken"}, "health": {"path": "/up", "seconds": 1}}),
            "health",
            "GET /up answered 500: GET /up",
        ),
    ] {
        bench.configure(settings.clone());
        let errors = bench.fails(step);
        assert!(errors.iter().any(|error| error.contains(want)), "{settings}: {errors:?}");
        assert!(errors.len() <= 12 && errors.iter().all(|error| error.chars().count() <= 500));
        if step == "serve" {
            assert_eq!(bench.call("status", &[])["running"], false, "{settings}");
        }
    }
    assert!(bench.call("read_log", &[("name", "health")]).as_str().unwrap().contains("sick"));
    assert!(bench.try_call("read_log", &[("name", "../x")]).is_err());
    // The work state has it, as the next round gets it.
    bench.configure(json!({"types": sh("echo TS2304 cannot find name Chart; exit 2")}));
    let outcome = bench.call("living_ui_validate", &[]);
    bench.record(
        "record_spawn",
        json!({"agent": "coding_agent", "status": "completed", "result": "x"}),
    );
    bench.record("record_validate_outcome", json!({"result": outcome}));
    let step = bench.call("step", &[]);
    let query = step["step"]["actions"][0]["parameters"]["query"].as_str().unwrap();
    assert!(
        query.contains("failed at types") && query.contains("- TS2304 cannot find name Chart"),
        "{query}"
    );
}

#[test]
fn the_schema_step_reads_both_forms_and_names_the_field() {
    let import = "cp {schema} {data}/imported.json";
    let bench = Bench::new(json!({"schema": {"command": ["sh", "-c", import]}}));
    let old = r#"[{"name": "tasks", "schema": [{"name": "status", "type": "select", "options": {"maxSelect": 1, "values": ["todo"]}}]}]"#;
    bench.write("backend/schema.json", old);
    let outcome = bench.call("living_ui_validate", &[]);
    assert_eq!(outcome["steps"], json!(["serve", "schema", "health"]), "{outcome}");
    let imported: Value =
        bench.0.file("living-ui/apps/t1/data/imported.json").unwrap().parse().unwrap();
    assert_eq!(
        (&imported[0]["fields"][1]["values"], &imported[0]["schema"]),
        (&json!(["todo"]), &Value::Null)
    );

    bench.write("backend/schema.json", &old.replace("[\"todo\"]", "[]"));
    let errors = bench.fails("schema");
    assert!(
        errors[0].starts_with("backend/schema.json: tasks.status: a select needs"),
        "{errors:?}"
    );
    bench.write("backend/schema.json", "[");
    assert!(bench.fails("schema")[0].contains("not JSON"));

    bench.write("backend/schema.json", old);
    let rejection = r#"echo 'Data validations failed for collection "tasks" (x): {"fields": {"1": {"maxSelect": "too small"}}}.'; exit 1"#;
    bench.configure(json!({"schema": {"command": ["sh", "-c", rejection]}}));
    let errors = bench.fails("schema");
    assert_eq!(errors[0], "tasks.status: maxSelect: too small");
    assert!(
        errors.iter().any(|error| error.contains("Data validations failed")),
        "verbatim too: {errors:?}"
    );
}

#[test]
fn a_launch_that_is_given_up_leaves_nothing_but_the_app() {
    let bench = Bench::new(json!({"build": {"command": ["sleep", "300"]}}));
    thread::scope(|scope| {
        scope.spawn(|| {
            let record = "living-ui/apps/t1/run/build.log";
            wait_until("the build runs", || bench.0.file(record).is_some());
            bench.0.set_cancelled(true);
        });
        let errors = bench.fails("build");
        assert!(errors[0].contains("given up"), "{errors:?}");
    });
    bench.0.set_cancelled(false);
    assert_eq!(bench.call("status", &[])["running"], true);
}

#[test]
fn an_app_that_ended_is_served_again_on_its_port() {
    let bench = Bench::new(json!({}));
    bench.call("step", &[]);
    let port = bench.call("living_ui_validate", &[])["port"].clone();
    bench.process("serve").end();
    assert_eq!(bench.call("status", &[])["running"], false);
    assert!(bench.try_call("fetch", &[]).unwrap_err().message().contains("not served"));
    bench.call("step", &[]);
    let status = bench.call("status", &[]);
    assert_eq!(status["url"], url(&port));
    // One that was stopped stays stopped, until it is started.
    bench.call("stop", &[]);
    bench.call("step", &[]);
    assert_eq!(bench.call("status", &[])["running"], false);
    assert_eq!(bench.call("start", &[])["port"], port);
    assert_eq!(bench.call("start", &[])["port"], port, "twice is once");
}

#[test]
fn a_tunnel_lives_as_long_as_its_app() {
    let tunnel = json!({"command": ["sh", "-c", "echo https://a.example; exec sleep 300"]});
    let bench = Bench::new(json!({"tunnel": tunnel}));
    bench.0.seed_file(
        &format!("{STATE}/logs/work_state.json"),
        r#"{"launched": true, "validated": true}"#,
    );
    bench.call("living_ui_validate", &[]);
    assert_eq!(bench.call("living_ui_notify_ready", &[])["public_url"], "https://a.example");
    let running = bench.process("tunnel");
    assert_eq!(bench.call("living_ui_notify_ready", &[])["public_url"], "https://a.example");
    assert_eq!(bench.process("tunnel"), running, "one tunnel");
    // The app ends without anybody's doing; no call is made until the tunnel has ended too.
    bench.process("serve").end();
    wait_until("the tunnel ended by itself", || !running.is_running());
    assert_eq!(bench.call("status", &[])["public_url"], Value::Null);

    for (command, want) in
        [("echo no account; exit 1", "no account"), ("sleep 300", "no address within 1 s")]
    {
        bench.configure(json!({"tunnel": {"command": ["sh", "-c", command], "seconds": 1}}));
        let told = bench.call("living_ui_notify_ready", &[]);
        assert_eq!((&told["status"], &told["public_url"]), (&json!("success"), &Value::Null));
        assert!(told["tunnel_error"].as_str().unwrap().contains(want), "{told}");
        assert!(bench.0.file("living-ui/apps/t1/run/tunnel.json").is_none());
    }
}

#[test]
fn an_app_is_one_task_s_and_changes_hands_in_one_way() {
    let bench = Bench::new(json!({}));
    let other = r#"{"id": "t2", "query": "darker", "subject": "t1"}"#;
    bench.call("step", &[]);
    bench.record(
        "record_spawn",
        json!({"agent": "coding_agent", "status": "completed", "result": "built"}),
    );
    bench.record("record_user_lead", json!({"text": "add a chart"}));
    let refused = bench.try_call("step", &[("task", other)]).unwrap_err();
    assert!(refused.message().contains("belongs to task t1"), "{refused}");
    let arguments = r#"{"reset": true, "request": "make it darker"}"#;
    let bound = bench.call("ensure_owner", &[("task", other), ("arguments", arguments)]);
    assert_eq!(
        bound,
        json!({"app": "t1", "owner": "t2", "previous": "t1", "workflow_id": "living_ui_creation"})
    );
    assert!(bench.try_call("step", &[]).unwrap_err().message().contains("belongs to task t2"));
    let state = bench.call("state", &[("task", other)])["state"].clone();
    assert_eq!(
        (&state["backlog"], &state["user_leads"]),
        (&json!(["add a chart"]), &json!(["make it darker"]))
    );
    assert_eq!((&state["update_scope"], &state["built"]), (&json!(true), &Value::Null));
    let step = bench.call("step", &[("task", other)]);
    assert_eq!(step["stage"], "work_round", "what was built stands");
    assert!(
        step["step"]["actions"][0]["parameters"]["query"]
            .as_str()
            .unwrap()
            .starts_with("Change the app")
    );
    // Twice is once, and without reset nothing is reset.
    let again = bench.call("ensure_owner", &[("task", other)]);
    assert_eq!(again["previous"], Value::Null);
    // A loop of its own says whom it gives the app to.
    bench.call(
        "adopt_reset",
        &[("state_dir", STATE), ("arguments", r#"{"targeted": true, "task": "t1"}"#)],
    );
    bench.call("step", &[]);
    assert!(bench.try_call("ensure_owner", &[("task", r#"{"subject": "t1"}"#)]).is_err());
}

#[test]
fn what_runs_for_a_task_ends_with_it() {
    let bench = Bench::new(json!({}));
    let launched = || {
        bench.call("step", &[]);
        assert_eq!(bench.call("living_ui_validate", &[])["status"], "success");
        bench.process("serve")
    };
    for status in ["abort", "cancelled"] {
        let app = launched();
        // Another task's end is not this one's.
        let other = r#"{"id": "t9", "subject": "t1"}"#;
        let arguments = json!({"status": status}).to_string();
        bench.call("task_ended", &[("task", other), ("arguments", &arguments)]);
        assert!(app.is_running());
        bench.call("task_ended", &[("arguments", &arguments)]);
        assert!(!app.is_running(), "{status}");
    }
    // The host was down when the task ended.
    let app = launched();
    let boot = |running: &str| bench.call("boot_restore", &[("arguments", running)]);
    assert_eq!(boot(r#"{"running": ["t1"]}"#), json!({"ghosts": []}));
    assert!(app.is_running());
    assert_eq!(boot(r#"{"running": ["t7"]}"#), json!({"ghosts": ["t7"]}));
    assert!(!app.is_running());
    assert!(bench.try_call("boot_restore", &[]).is_err());
}

#[test]
fn a_program_whose_host_died_right_after_the_start_is_found_by_its_mark() {
    let bench = Bench::new(json!({}));
    bench.call("step", &[]);
    bench.call("living_ui_validate", &[]);
    let app = bench.process("serve");
    let mut value = app.to_value();
    value["pid"] = Value::Null;
    value["start"] = 0.into();
    bench.0.seed_file("living-ui/apps/t1/run/serve.json", &value.to_string());
    let status = bench.call("status", &[]);
    assert_eq!((&status["running"], &status["pid"]), (&json!(true), &Value::Null));
    bench.call("boot_restore", &[("arguments", r#"{"running": ["t1"]}"#)]);
    assert_eq!(bench.process("serve").pid, app.pid);
    bench.call("stop", &[]);
    assert!(!app.is_running());
}

#[test]
fn a_state_of_the_old_form_stays_validated() {
    let bench = Bench::new(json!({}));
    let old = r#"{"fix_rounds": 2, "launched": true, "validated": true, "last_validate": {"step": "success", "at": 1}}"#;
    bench.0.seed_file(&format!("{STATE}/logs/work_state.json"), old);
    assert_eq!(bench.call("task_end_gate", &[])["allowed"], true);
    assert_eq!(bench.call("status", &[])["validated"], true);
    assert_eq!(bench.call("step", &[])["stage"], "finish");
}

#[test]
fn what_cannot_be_done_is_refused_in_words() {
    let bench = Bench::new(json!({}));
    for (call, more, want) in [
        ("write_file", &[("path", "../x"), ("text", "x")][..], "../x"),
        ("write_file", &[("text", "x")], "no file of an app"),
        ("write_file", &[("path", ".app.lock")], "no file of an app"),
        ("read_file", &[("path", "/etc/passwd")], "passwd"),
        ("configure", &[("arguments", r#"{"server": {}}"#)], "know no `server`"),
        ("configure", &[("arguments", r#"{"build": {"command": []}}"#)], "`build.command`"),
        ("configure", &[], "an object"),
        ("status", &[("task", r#"{"id": "../x"}"#)], "cannot name an app"),
        ("status", &[("task", "{}")], "which app"),
        ("step", &[("task", r#"{"id": "a/b"}"#)], "cannot name an app"),
        ("publish", &[], "known:"),
    ] {
        let refused = bench.try_call(call, more).unwrap_err();
        assert!(refused.message().contains(want), "{call}: {refused}");
    }
    assert_eq!(bench.call("read_file", &[("path", "frontend/none.js")])["error"], "not found");
    assert_eq!(bench.call("remove_file", &[("path", "frontend/none.js")])["ok"], false);
    assert_eq!(bench.call("remove_file", &[("path", "backend/schema.json")])["ok"], true);
    assert_eq!(bench.call("subject", &[("task", "{}")]), Value::Null);
    assert_eq!(bench.call("apps", &[]), json!([]));
    assert_eq!(bench.call("scaffold", &[])["created"], false);
}
