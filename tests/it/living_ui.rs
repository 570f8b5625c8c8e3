//! Apps on the running host: what is served outlives calls and hosts, ends with its task, and is nobody else's process.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::build::built;
use crate::support::fixture::write;
use crate::support::host_process::{HostOptions, HostProcess, wait_until};
use crate::support::{parse, pocketbase};

const LONG: Duration = Duration::from_secs(120);

/// The program that serves where no database is needed: this test binary itself.
#[test]
#[ignore = "a program for the other tests"]
fn stand_in() {
    let port = std::env::var("PORT").unwrap().parse().unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let (mut request, mut chunk) = (Vec::new(), [0; 2048]);
        while !request.windows(4).any(|window| window == b"\r\n\r\n") {
            match stream.read(&mut chunk) {
                Ok(read @ 1..) => request.extend_from_slice(&chunk[..read]),
                _ => break,
            }
        }
        if !request.is_empty() {
            let _gone = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
        }
    }
}

fn stand_in_command() -> Value {
    let program = std::env::current_exe().unwrap();
    json!([program.to_str().unwrap(), "--ignored", "--exact", "living_ui::stand_in", "--nocapture"])
}

/// A state folder whose programs are ended with it.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new(settings: &Value) -> Bench {
        let bench = Bench { folder: tempfile::tempdir().unwrap() };
        write(
            &bench.folder.path().join("living-ui/pipeline.json"),
            settings.to_string().as_bytes(),
        );
        bench
    }

    fn host(&self) -> HostProcess {
        HostProcess::start(&HostOptions::new().arg("--app-dir").arg(self.folder.path()))
    }

    /// A command of the host's own on this folder.
    fn command(&self, words: &[&str]) -> Command {
        let built = built();
        let mut command = Command::new(&built.host);
        command
            .arg("--no-build")
            .arg("--udfs")
            .arg(&built.udfs)
            .arg("--app-dir")
            .arg(self.folder.path());
        command.args(words).env("XDG_CACHE_HOME", &built.cache).current_dir(self.folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// A command that must work, and the JSON it prints.
    #[track_caller]
    fn json(&self, words: &[&str]) -> Value {
        let output = self.command(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        parse(&String::from_utf8_lossy(&output.stdout))
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let apps = std::fs::read_dir(self.folder.path().join("living-ui/apps"))
            .into_iter()
            .flatten()
            .flatten();
        for app in apps {
            let id = json!({"id": app.file_name().to_str()}).to_string();
            let stop = ["exec", "workflows.living_ui_creation", "call=stop", &format!("task={id}")];
            let _best_effort = self.command(&stop).output();
        }
    }
}

fn call(host: &HostProcess, call: &str, more: Value) -> Value {
    let mut overrides = json!({"call": call, "task": {"id": "app", "query": "A task list"}});
    overrides.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    host.data("workflows", "living_ui_creation", &overrides)
}

fn answers(url: &str) -> bool {
    TcpStream::connect(url.strip_prefix("http://").unwrap()).is_ok()
}

fn lives(pid: &Value) -> bool {
    Path::new(&format!("/proc/{pid}/exe")).exists()
}

#[test]
fn a_served_app_outlives_its_hosts_and_is_found_again() {
    let bench = Bench::new(&json!({"serve": {"command": stand_in_command()}, "schema": null}));
    let mut host = bench.host();
    call(&host, "step", json!({}));
    let launched = call(&host, "living_ui_validate", json!({}));
    let url = launched["url"].as_str().unwrap();
    let status = call(&host, "status", json!({}));
    host.kill();
    assert!(answers(url), "nobody ended it");
    let mut host = bench.host();
    assert_eq!(call(&host, "status", json!({})), status, "found again by what is on disk");
    assert_eq!(call(&host, "fetch", json!({}))["body"], "hello");
    // Killed in the middle of a launch: at most one app is served, and the next launch knows it.
    call(&host, "configure", json!({"arguments": {"build": {"command": ["sleep", "600"]}}}));
    let (origin, token) = (host.origin.clone(), host.token.clone());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let url = format!("{origin}/api/exec/udf?t={token}&workspace=_core&project=workflows");
            let body = r#"{"udf": "living_ui_creation", "overrides": {"call": "living_ui_validate", "task": {"id": "app"}}}"#;
            // The host dies meanwhile.
            let _gone = ureq::post(&url).send(body);
        });
        let log = bench.folder.path().join("living-ui/apps/app/run/build.log");
        wait_until(LONG, "the build runs", || log.exists().then_some(())).unwrap();
        host.kill();
    });
    let host = bench.host();
    let second = call(&host, "status", json!({}));
    assert_eq!(second["running"], true);
    assert!(!lives(&status["pid"]), "the one before was ended by the launch");
    call(&host, "configure", json!({"arguments": {}}));
    let third = call(&host, "living_ui_validate", json!({}));
    assert_eq!((&third["status"], &third["url"]), (&json!("success"), &launched["url"]));
    assert!(!lives(&second["pid"]));
    assert_eq!(call(&host, "stop", json!({})), json!({"ok": true, "ran": true}));
    assert!(!answers(url));
}

#[test]
fn a_process_that_is_not_the_app_s_is_never_ended() {
    let bench = Bench::new(&json!({"serve": {"command": stand_in_command()}, "schema": null}));
    let host = bench.host();
    call(&host, "step", json!({}));
    call(&host, "living_ui_validate", json!({}));
    let record = bench.folder.path().join("living-ui/apps/app/run/serve.json");
    let mut value = parse(&std::fs::read_to_string(&record).unwrap());
    call(&host, "stop", json!({}));
    // The id of the app that ended belongs to somebody else now.
    let mut foreign = Command::new("sleep").arg("600").spawn().unwrap();
    value["pid"] = foreign.id().into();
    write(&record, value.to_string().as_bytes());
    assert_eq!(call(&host, "status", json!({}))["running"], false);
    assert_eq!(call(&host, "stop", json!({})), json!({"ok": true, "ran": false}));
    assert!(foreign.try_wait().unwrap().is_none(), "it lives");
    foreign.kill().unwrap();
    foreign.wait().unwrap();
}

/// Flow A on the host with the scripted provider, its workflow named by an alias of `project.toml`.
#[test]
fn flow_a_runs_from_request_to_handover_under_its_old_name() {
    let build = "if grep -n Chart frontend/index.html; then exit 2; fi";
    let tunnel = json!({"command": ["sh", "-c", "echo https://tasks.try.example; exec sleep 600"], "contains": "try.example"});
    let bench = Bench::new(&json!({"serve": {"command": stand_in_command()}, "schema": null,
        "build": {"command": ["sh", "-c", build]}, "tunnel": tunnel}));
    let writes = |text: &str| json!({"action_name": "write_file", "parameters": {"path": "frontend/index.html", "text": text}});
    let ends = |result: &str| json!({"action_name": "sub_task_end", "parameters": {"status": "completed", "result": result}});
    let fetches = json!({"action_name": "fetch", "parameters": {"path": "/"}});
    let script = [
        // The worker's first end is refused: the page is still the empty one.
        ends("done?"),
        writes("<p>tasks</p>"),
        ends("built one page"),
        fetches.clone(),
        ends("VERDICT: FAIL\n- Add task — PASS\n- Export — FAIL — click does nothing"),
        writes("<p>tasks</p><script>new Chart()</script>"),
        ends("rewired export"),
        writes("<p>tasks, exported</p>"),
        ends("no chart any more"),
        fetches,
        ends("VERDICT: PASS\n- Add task — PASS\n- Export — PASS"),
        json!({"actions": [
            {"action_name": "send_message", "parameters": {"message": "Your task list is ready."}},
            {"action_name": "task_end", "parameters": {"status": "complete", "summary": "a task list"}},
        ]}),
    ];
    let file = bench.folder.path().join("script.txt");
    write(&file, script.map(|line| line.to_string()).join("\n").as_bytes());
    let run = bench.json(&[
        "agent",
        "run",
        "--workflow",
        "living_ui_development",
        "--request",
        "A task list",
        "--json",
        "--dry-run",
        "--script",
        file.to_str().unwrap(),
    ]);
    assert_eq!(
        (&run["status"], &run["ended"]["summary"]),
        (&json!("complete"), &json!("a task list")),
        "{run}"
    );
    let task = run["task"].as_str().unwrap();
    let state_dir = bench.folder.path().join("workflows/living_ui_creation").join(task);
    let journal = std::fs::read_to_string(state_dir.join("logs/workflow_journal.jsonl")).unwrap();
    let lines: Vec<Value> = journal.lines().map(parse).collect();
    let events: Vec<&str> = lines
        .iter()
        .filter_map(|line| line["event"].as_str())
        .filter(|event| *event != "step")
        .collect();
    assert_eq!(
        events,
        [
            "worker_outcome",
            "work_outcome",
            "check_outcome",
            "round_counted",
            "worker_outcome",
            "work_outcome",
            "round_counted",
            "worker_outcome",
            "work_outcome",
            "check_outcome"
        ]
    );
    let stages: Vec<&str> = lines
        .iter()
        .filter(|line| line["event"] == "step")
        .map(|line| line["stage"].as_str().unwrap())
        .collect();
    assert_eq!(
        stages,
        [
            "bootstrap",
            "work_round",
            "check",
            "work_round",
            "work_round",
            "work_round",
            "work_round",
            "check",
            "finish",
            "finish"
        ]
    );
    assert_eq!(lines.iter().find(|line| line["step"] == "build").unwrap()["ok"], false);
    // Handed over: it goes on being served, with its address, on a host that comes later.
    let host = bench.host();
    let of = json!({"task": {"id": task}});
    let status = call(&host, "status", of.clone());
    assert_eq!((&status["running"], &status["validated"]), (&json!(true), &json!(true)));
    assert_eq!(
        (&status["owner"], &status["public_url"]),
        (&json!(task), &json!("https://tasks.try.example"))
    );
    assert_eq!(
        host.data("workflows", "living_ui_creation", &json!({"call": "apps"})),
        json!([status])
    );
    call(&host, "stop", of.clone());
    assert_eq!(call(&host, "status", of)["public_url"], Value::Null);
}

#[test]
fn a_task_that_is_given_up_ends_its_app() {
    let bench = Bench::new(&json!({"serve": {"command": stand_in_command()}, "schema": null}));
    let act =
        |name: &str, parameters: Value| json!({"action_name": name, "parameters": parameters});
    let script = [
        act("write_file", json!({"path": "frontend/index.html", "text": "<p>x</p>"})),
        act("sub_task_end", json!({"status": "completed", "result": "built"})),
        // The checker's model is away: the work pauses with the app served.
        json!({"refused": "no key"}),
        json!({"actions": [act("send_message", json!({"message": "I gave it up."}))]}),
    ];
    let file = bench.folder.path().join("script.txt");
    write(&file, script.map(|line| line.to_string()).join("\n").as_bytes());
    let words = [
        "agent",
        "run",
        "--workflow",
        "living_ui_creation",
        "--request",
        "x",
        "--json",
        "--dry-run",
        "--script",
    ];
    let parked = bench.json(&[&words[..], &[file.to_str().unwrap()]].concat());
    let task = parked["task"].as_str().unwrap();
    let host = bench.host();
    let of = json!({"task": {"id": task}});
    let status = call(&host, "status", of.clone());
    assert_eq!(
        (&status["running"], &status["phase"]),
        (&json!(true), &json!("paused_infra")),
        "{parked}"
    );
    // Whoever takes the app over is its owner; the one before is cancelled and has nothing to end any more.
    let second = bench
        .command(&[
            "agent",
            "run",
            "--subject",
            task,
            "--workflow",
            "living_ui_creation",
            "--request",
            "y",
            "--dry-run",
            "--script",
            file.to_str().unwrap(),
        ])
        .output()
        .unwrap();
    assert!(second.status.success(), "{}", String::from_utf8_lossy(&second.stderr));
    let owner = call(&host, "status", of.clone())["owner"].clone();
    assert_ne!(owner, *task);
    // Given up: what runs for it ends.
    call(&host, "task_ended", json!({"task": {"id": task}, "arguments": {"status": "abort"}}));
    let gone = json!({"task": {"id": owner, "subject": task}, "arguments": {"status": "abort"}});
    call(&host, "task_ended", gone);
    assert_eq!(call(&host, "status", of)["running"], false);
    assert!(!lives(&status["pid"]));
}

#[test]
fn a_real_pocketbase_takes_the_schema_and_names_the_field_it_refuses() {
    let Some(program) = pocketbase::program() else { return };
    let bench = Bench::new(&json!({"pocketbase": program}));
    let host = bench.host();
    call(&host, "step", json!({}));
    let put =
        |path: &str, text: &str| call(&host, "write_file", json!({"path": path, "text": text}));
    put("frontend/index.html", "<p>tasks</p>");
    // The old form, a relation by name, and its target behind it; the time of a record came by itself then.
    let schema = |values: &str, max: u32| {
        format!(
            r#"[{{"name": "tasks", "listRule": "", "viewRule": "", "createRule": "",
                "indexes": ["CREATE INDEX tasks_created ON tasks (created)"], "schema": [
                {{"name": "title", "type": "text", "required": true, "options": {{"min": null, "max": 80}}}},
                {{"name": "status", "type": "select", "options": {{"maxSelect": 1, "values": {values}}}}},
                {{"name": "minutes", "type": "number", "options": {{"min": 5, "max": {max}, "noDecimal": true}}}},
                {{"name": "list", "type": "relation", "options": {{"collectionId": "lists", "maxSelect": 1}}}}
            ]}}, {{"name": "lists", "type": "base", "listRule": "", "fields": [{{"name": "name", "type": "text"}}]}}]"#
        )
    };
    put("backend/schema.json", &schema(r#"["todo", "done"]"#, 90));
    for round in 0..2 {
        let launched = call(&host, "living_ui_validate", json!({}));
        assert_eq!(launched["steps"], json!(["serve", "schema", "health"]), "{round}: {launched}");
    }
    let fetch = |name: &str, path: &str, text: Value| {
        call(&host, "fetch", json!({"name": name, "path": path, "text": text.to_string()}))
    };
    let made = fetch(
        "POST",
        "/api/collections/tasks/records",
        json!({"title": "a", "status": "todo", "minutes": 7}),
    );
    assert_eq!(made["status"], 200, "{made}");
    assert!(made["body"].as_str().unwrap().contains("\"created\":\"20"), "{made}");
    let refused =
        fetch("POST", "/api/collections/tasks/records", json!({"title": "a", "status": "later"}));
    assert_eq!(refused["status"], 400, "a value that is not among `options.values`: {refused}");
    assert_eq!(call(&host, "fetch", json!({}))["body"], "<p>tasks</p>");

    // What the server refuses is named by collection and field, ahead of its own words.
    put("backend/schema.json", &schema(r#"["todo"]"#, 1));
    let rejected = call(&host, "living_ui_validate", json!({}));
    assert_eq!((&rejected["status"], &rejected["step"]), (&json!("error"), &json!("schema")));
    let errors = rejected["errors"].as_array().unwrap();
    assert!(errors[0].as_str().unwrap().starts_with("tasks.minutes: max: "), "{rejected}");
    assert!(
        errors[1].as_str().unwrap().contains("Data validations failed for collection \"tasks\""),
        "{rejected}"
    );
    put("backend/schema.json", &schema(r#"["todo"]"#, 90).replace("\"relation\"", "\"relatoin\""));
    let rejected = call(&host, "living_ui_validate", json!({}));
    assert!(rejected["errors"][0].as_str().unwrap().starts_with("tasks.list: "), "{rejected}");
    put("backend/schema.json", &schema("[]", 90));
    let rejected = call(&host, "living_ui_validate", json!({}));
    assert!(
        rejected["errors"][0].as_str().unwrap().contains("tasks.status: a select needs `values`"),
        "{rejected}"
    );

    // The data outlived it all, launches and a host included.
    put("backend/schema.json", &schema(r#"["todo", "done"]"#, 90));
    let launched = call(&host, "living_ui_validate", json!({}));
    assert_eq!(launched["status"], "success", "{launched}");
    drop(host);
    let host = bench.host();
    let listed =
        call(&host, "fetch", json!({"path": "/api/collections/tasks/records?sort=-created"}));
    assert!(listed["body"].as_str().unwrap().contains("\"totalItems\":1"), "{listed}");
    // Nobody can sign in with what a command line showed.
    assert_eq!(call(&host, "stop", json!({}))["ran"], true);
}
