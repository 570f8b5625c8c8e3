//! What a function may do during a call, against a real store.

use std::time::Duration;

use sdk::host::with_context;
use sdk::prelude::*;
use sdk::testing::TestHost;

/// Declares something of everything.
#[udf(reads("tasks"), writes("cards", "comments"), calls("other.op"), logs("runs"), folders, net)]
fn probe(_ctx: &Context) -> Result<Reply, UdfError> {
    Ok(Reply::null())
}

const CARDS: &str = r#"[
  {
    "id": "card_1",
    "status": "pending",
    "n": 12345678901234567890123
  },
  "not an object",
  {
    "id": "card_2",
    "status": "answered"
  },
  {
    "id": "card_3",
    "status": "pending"
  }
]"#;

fn host() -> TestHost {
    let host = TestHost::new();
    host.seed("cards", CARDS);
    host
}

fn ids(records: &[Record]) -> Vec<String> {
    records.iter().map(|record| record.str("id").unwrap_or_default().into_owned()).collect()
}

#[test]
fn reads_find_records_as_they_stand() {
    let host = host();
    let ctx = host.context(UDF);
    let cards = ctx.read("cards").unwrap();
    assert_eq!((cards.len(), cards.state()), (4, &CollectionState::Stored));
    assert_eq!(
        cards.get("card_2").unwrap().text(),
        "{\n    \"id\": \"card_2\",\n    \"status\": \"answered\"\n  }"
    );
    assert_eq!(cards.get("nope"), None);
    assert_eq!(ids(&cards.matching("status", "pending")), ["card_1", "card_3"]);
    assert_eq!(cards.find("status", "answered").unwrap().str("id").as_deref(), Some("card_2"));
    assert_eq!(cards.records().len(), 4);
    assert_eq!(ids(&cards.objects()), ["card_1", "card_2", "card_3"]);
    assert_eq!(cards.value().text(), CARDS);
    let tasks = ctx.read("tasks").unwrap();
    assert!(tasks.is_empty() && tasks.records().is_empty() && tasks.get("x").is_none());
    assert_eq!(tasks.state(), &CollectionState::Missing);
}

#[test]
fn a_read_is_one_moment() {
    let host = host();
    let ctx = host.context(UDF);
    let before = ctx.read("cards").unwrap();
    let tx = ctx.begin(&["cards"]).unwrap();
    let mut cards = tx.collection("cards").unwrap();
    cards.push(Object::new().set("id", "card_4")).unwrap();
    assert_eq!(before.records().len(), 4);
    tx.commit().unwrap();
    assert_eq!(before.records().len(), 4, "an open snapshot does not change");
    assert_eq!(ctx.read("cards").unwrap().len(), 5);
}

/// More than one chunk of the scan.
#[test]
fn long_collections_are_read_in_chunks() {
    let host = TestHost::new();
    let text = "x".repeat(100_000);
    let cards: Vec<_> = (0..35).map(|n| json!({"id": format!("card_{n}"), "text": text})).collect();
    host.seed("cards", &Value::from(cards).to_string());
    let ctx = host.context(UDF);
    let records = ctx.read("cards").unwrap().records();
    let want: Vec<_> = (0..35).map(|n| format!("card_{n}")).collect();
    assert_eq!(ids(&records), want);
}

#[test]
fn what_is_not_declared_is_refused_by_name() {
    let host = host();
    let ctx = host.context(UDF);
    for (error, want) in [
        (ctx.read("runs").unwrap_err(), "reads the collection `runs` without declaring it"),
        (ctx.begin(&["cards", "tasks"]).unwrap_err(), "writes the collection `tasks`"),
        (ctx.log("artifact-chats", "x").unwrap_err(), "uses logs in `artifact-chats`"),
        (ctx.call("no.op", &[]).unwrap_err(), "calls `no.op` without declaring it"),
    ] {
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.message().contains(want), "{error}");
    }
    assert!(host.file("state/.tasks.lock").is_none(), "nothing was locked");
    assert!(ctx.fault().is_none(), "a refusal is the function's to handle");
}

#[test]
fn a_transaction_sees_its_own_changes_and_stores_them_whole() {
    let host = host();
    let ctx = host.context(UDF);
    let tx = ctx.begin(&["cards", "comments"]).unwrap();
    let mut cards = tx.collection("cards").unwrap();
    let first = cards.get("card_1").unwrap();
    let first = cards.update(&first, first.edit().set("status", "superseded")).unwrap();
    let pushed = cards.push(Object::new().set("id", "card_4").set("status", "pending")).unwrap();
    assert_eq!(ids(&cards.matching("status", "pending")), ["card_3", "card_4"]);
    assert_eq!(ids(&cards.matching("status", "superseded")), ["card_1"]);
    // A changed record can be changed again, a pushed one too.
    cards.update(&first, first.edit().set("by", None::<&str>)).unwrap();
    let pushed = cards.update(&pushed, pushed.edit().set("status", "answered")).unwrap();
    assert_eq!(ids(&cards.matching("status", "answered")), ["card_2", "card_4"]);
    assert_eq!(cards.find("status", "answered").unwrap().str("id").as_deref(), Some("card_2"));
    cards.remove(&cards.get("card_2").unwrap()).unwrap();
    assert_eq!(cards.get("card_2"), None);
    cards.remove(&pushed).unwrap();
    cards.push(Object::new().set("id", "card_5")).unwrap();
    assert_eq!(cards.len(), 4);
    assert_eq!(ids(&cards.objects()), ["card_1", "card_3", "card_5"]);
    let mut comments = tx.collection("comments").unwrap();
    comments.push(Object::new().set("id", "cmt_1")).unwrap();
    tx.commit().unwrap();
    assert_eq!(
        host.file("state/cards.json").unwrap(),
        r#"[
  {
    "id": "card_1",
    "status": "superseded",
    "n": 12345678901234567890123,
    "by": null
  },
  "not an object",
  {
    "id": "card_3",
    "status": "pending"
  },
  {
    "id": "card_5"
  }
]"#
    );
    assert_eq!(host.stored("comments"), json!([{"id": "cmt_1"}]));
}

#[test]
fn a_dropped_or_empty_transaction_changes_nothing() {
    let host = TestHost::new();
    let compact = r#"[{"id":"card_1"}]"#;
    host.seed("cards", compact);
    let ctx = host.context(UDF);
    {
        let tx = ctx.begin(&["cards"]).unwrap();
        tx.collection("cards").unwrap().push(json!({"id": "x"}).to_record()).unwrap();
    }
    assert_eq!(host.file("state/cards.json").unwrap(), compact);
    ctx.begin(&["cards"]).unwrap().commit().unwrap();
    let tx = ctx.begin(&["cards"]).unwrap();
    let mut cards = tx.collection("cards").unwrap();
    let card = cards.get("card_1").unwrap();
    cards.update(&card, card.edit().set("id", "card_1")).unwrap();
    tx.commit().unwrap();
    assert_eq!(host.file("state/cards.json").unwrap(), compact, "no change, no rewrite");
    assert_eq!(host.file("state/.cards.lock").as_deref(), Some(""));
}

trait ToRecord {
    fn to_record(&self) -> JsonText;
}

impl ToRecord for Value {
    fn to_record(&self) -> JsonText {
        JsonText::of(self)
    }
}

#[test]
fn records_that_are_out_of_date_or_of_elsewhere_are_refused() {
    let host = host();
    let ctx = host.context(UDF);
    let outside = ctx.read("cards").unwrap().get("card_1").unwrap();
    let tx = ctx.begin(&["cards"]).unwrap();
    let mut cards = tx.collection("cards").unwrap();
    let inside = cards.get("card_1").unwrap();
    cards.update(&inside, inside.edit().set("status", "answered")).unwrap();
    let odd = cards.records()[1].clone();
    for error in [
        cards.update(&outside, outside.edit().set("status", "x")).unwrap_err(),
        cards.update(&inside, inside.edit().set("n", 1)).unwrap_err(),
        cards.remove(&inside).unwrap_err(),
        cards.remove(&Record::parse(r#"{"id":"card_1"}"#).unwrap()).unwrap_err(),
        cards.update(&odd, odd.edit().set("a", 1)).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::Internal, "{error}");
    }
    assert!(tx.collection("comments").is_err());
}

#[test]
fn retain_and_clear() {
    let host = host();
    let ctx = host.context(UDF);
    let tx = ctx.begin(&["cards"]).unwrap();
    let mut cards = tx.collection("cards").unwrap();
    cards.push(Object::new().set("id", "card_4").set("status", "pending")).unwrap();
    let gone = cards.retain(|card| !card.is("status", "pending"));
    assert_eq!(ids(&gone), ["card_1", "card_3", "card_4"]);
    assert_eq!(cards.len(), 2);
    tx.commit().unwrap();
    assert_eq!(
        host.stored("cards"),
        json!(["not an object", {"id": "card_2", "status": "answered"}])
    );
    let tx = ctx.begin(&["cards"]).unwrap();
    let mut cards = tx.collection("cards").unwrap();
    cards.clear();
    assert!(cards.is_empty() && cards.get("card_2").is_none());
    cards.push(Object::new().set("id", "new")).unwrap();
    tx.commit().unwrap();
    assert_eq!(host.stored("cards"), json!([{"id": "new"}]));
}

#[test]
fn a_falsy_collection_becomes_a_list_when_asked() {
    let host = TestHost::new();
    host.seed("cards", "null");
    let ctx = host.context(UDF);
    assert_eq!(ctx.read("cards").unwrap().state(), &CollectionState::Falsy);
    ctx.begin(&["cards"]).unwrap().commit().unwrap();
    assert_eq!(host.file("state/cards.json").unwrap(), "null");
    let tx = ctx.begin(&["cards"]).unwrap();
    tx.collection("cards").unwrap().make_list();
    tx.commit().unwrap();
    assert_eq!(host.file("state/cards.json").unwrap(), "[]");
}

#[test]
fn a_corrupt_collection_reads_as_empty_and_refuses_writes() {
    let host = TestHost::new();
    host.seed("cards", "[{");
    let ctx = host.context(UDF);
    let cards = ctx.read("cards").unwrap();
    assert!(cards.is_empty() && matches!(cards.state(), CollectionState::Corrupt(_)));
    let error = ctx.begin(&["cards"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Raised);
    let path = host.app_dir().join("state/cards.json");
    let start = format!("{} is corrupt and could not be parsed (", path.display());
    let end = "); inspect or restore it before retrying this write.";
    assert!(error.message().starts_with(&start) && error.message().ends_with(end), "{error}");
    assert_eq!(host.file("state/cards.json").unwrap(), "[{");
}

#[test]
fn values_that_no_file_can_hold_are_refused_where_they_are_given() {
    let host = host();
    let ctx = host.context(UDF);
    let tx = ctx.begin(&["cards"]).unwrap();
    let mut cards = tx.collection("cards").unwrap();
    let deep = JsonText::parse("[".repeat(1024) + &"]".repeat(1024)).unwrap();
    assert!(cards.push(deep).is_err());
    assert!(JsonText::parse("[NaN]").is_err());
}

#[test]
fn one_transaction_at_a_time_and_no_call_inside_it() {
    let host = host();
    host.answer("other.op", |params| Ok(Reply::text(params.get("x").unwrap_or("none"))));
    let ctx = host.context(UDF);
    let tx = ctx.begin(&["cards"]).unwrap();
    let error = ctx.begin(&["comments"]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    let error = ctx.call("other.op", &[("x", "1")]).unwrap_err();
    assert!(error.message().contains("holds a lock"), "{error}");
    drop(tx);
    assert_eq!(ctx.call("other.op", &[("x", "1")]), Ok(Reply::text("1")));
    assert!(ctx.begin(&["comments"]).is_ok());
}

#[test]
fn logs_append_read_and_confine() {
    let host = TestHost::new();
    let ctx = host.context(UDF);
    for id in ["", "../x", "a/b", "/etc/x", "a\0b"] {
        assert!(ctx.log("runs", id).unwrap().is_none(), "{id:?}");
    }
    let log = ctx.log("runs", "run-1").unwrap().unwrap();
    assert!(!log.exists().unwrap() && log.read().unwrap().is_empty());
    log.append(Object::new().set("n", 1)).unwrap();
    log.append(JsonText::parse(r#"{"s":"\ud800"}"#).unwrap()).unwrap();
    assert_eq!(host.file("runs/run-1.ndjson").unwrap(), "{\"n\": 1}\n{\"s\": \"\\ud800\"}\n");
    let entries = log.read().unwrap();
    assert_eq!(entries[0].get("n").and_then(|n| n.as_i64()), Some(1));
    assert_eq!(Reply::records(entries).to_json().unwrap(), r#"[{"n": 1},{"s": "\ud800"}]"#);
    assert!(!log.create(&[]).unwrap(), "there is one already");
    assert!(log.remove().unwrap() && !log.remove().unwrap());
    assert!(log.create(&[JsonText::of(&1), JsonText::of("x")]).unwrap());
    assert_eq!(host.file("runs/run-1.ndjson").unwrap(), "1\n\"x\"\n");
    ctx.create_log_directory("runs").unwrap();
}

#[test]
fn folders_are_written_under_their_lock() {
    let host = TestHost::new();
    let root = host.app_dir().join("base");
    let root = root.to_str().unwrap();
    let ctx = host.context(UDF);
    let run = ctx.folder(root, "org/project/run", "state.json.lock").unwrap();
    assert!(!run.exists().unwrap());
    assert!(
        run.create(&["events"], &[("state.json", "{}\n"), ("events/.next-id", "1\n")]).unwrap()
    );
    assert!(!run.create(&[], &[]).unwrap(), "one creator wins");
    {
        let mut guard = run.lock(Duration::from_secs(30)).unwrap().unwrap();
        assert_eq!(run.lock(Duration::ZERO).unwrap_err().kind(), ErrorKind::Refused);
        let second = ctx.folder(root, "org/project/run", "state.json.lock").unwrap();
        assert!(second.lock(Duration::from_millis(20)).unwrap().is_none(), "held by the first");
        guard.replace("state.json", "{\"n\": 1}\n").unwrap();
        assert!(guard.create_new("events/001-a.json", "x").unwrap());
        assert!(!guard.create_new("events/001-a.json", "y").unwrap());
        assert!(guard.create_new("gone", "").unwrap() && guard.remove("gone").unwrap());
        assert!(!guard.remove("gone").unwrap());
        assert!(ctx.call("other.op", &[]).unwrap_err().message().contains("holds a lock"));
    }
    assert!(run.lock(Duration::ZERO).unwrap().is_some(), "given back");
    assert_eq!(run.read("state.json").unwrap().as_deref(), Some("{\"n\": 1}\n"));
    assert_eq!(run.read("events/001-a.json").unwrap().as_deref(), Some("x"));
    assert_eq!(run.read("nothing").unwrap(), None);
    let names = |path: &str| -> Vec<(String, bool)> {
        run.list(path).unwrap().into_iter().map(|e| (e.name, e.is_directory)).collect()
    };
    assert_eq!(names("events"), [(".next-id".into(), false), ("001-a.json".into(), false)]);
    assert!(names("").contains(&("events".into(), true)));
    assert!(names("missing").is_empty());
    assert!(run.read("../other").is_err());
    assert!(ctx.folder(root, "../out", "lock").is_err());
}

#[test]
fn time_stands_still_during_a_call_and_ids_do_not_repeat() {
    let host = TestHost::new();
    host.set_now(Timestamp::from_unix_ms(1_769_846_709_007));
    let ctx = host.context(UDF);
    assert_eq!(ctx.now().to_string(), "2026-01-31T08:05:09.007Z");
    host.set_now(Timestamp::from_unix_ms(0));
    assert_eq!(ctx.now().unix_ms(), 1_769_846_709_007);
    assert_eq!(host.context(UDF).now().unix_ms(), 0);
    let real = TestHost::new().context(UDF).now();
    assert!(real > Timestamp::from_unix_ms(1_700_000_000_000));

    let ids: std::collections::HashSet<String> = (0..100).map(|_| ctx.mint("card_")).collect();
    assert_eq!(ids.len(), 100);
    let hex = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    assert!(ids.iter().all(|id| id.len() == 17 && hex(id.strip_prefix("card_").unwrap())));
    let uuid = ctx.uuid();
    assert!(uuid.len() == 32 && hex(&uuid) && uuid.as_bytes()[12] == b'4');
    assert!(b"89ab".contains(&uuid.as_bytes()[16]));
}

#[test]
fn lines_deadline_and_cancellation() {
    let host = TestHost::new();
    let ctx = host.context(UDF);
    ctx.info("started");
    ctx.warn("odd");
    assert_eq!(host.lines(), ["info: started", "warn: odd"]);
    assert_eq!(ctx.deadline(), None);
    host.set_deadline(Some(Duration::from_millis(1500)));
    assert_eq!(ctx.deadline(), Some(Duration::from_millis(1500)));
    assert!(!ctx.cancelled());
    host.set_cancelled(true);
    assert!(ctx.cancelled());
}

/// A host that fails at one kind of request.
struct Failing {
    at: sdk::abi::Method,
    session: sdk::host::StoreSession,
}

impl Failing {
    fn new(at: sdk::abi::Method, host: &TestHost) -> Self {
        let store = core_store::Store::open(core_store::StoreOptions::default());
        let access = sdk::host::Descriptor::of(UDF.plugin()).expect("a plugin of ours").access();
        let app = store.app(host.app_dir());
        Self { at, session: sdk::host::StoreSession::new(&store, app, access.into()) }
    }
}

impl sdk::host::HostService for Failing {
    fn call(&self, method: sdk::abi::Method, request: &[u8]) -> Result<Vec<u8>, UdfError> {
        if method == self.at {
            return Err(UdfError::new(ErrorKind::Timeout, "too late"));
        }
        self.session.call(method, request).expect("a request of the store")
    }
    fn cancelled(&self) -> bool {
        false
    }
}

/// A look into a collection has no error of its own, so the host's fault must not pass for "nothing
/// found": it becomes the answer of the call, and nothing is written after it.
#[test]
fn a_fault_of_the_host_during_a_look_is_not_lost() {
    let host = host();
    with_context(&Failing::new(sdk::abi::Method::FIND, &host), |ctx| {
        let tx = ctx.begin(&["cards"]).unwrap();
        let mut cards = tx.collection("cards").unwrap();
        assert_eq!(cards.get("card_1"), None);
        cards.push(Object::new().set("id", "card_1")).unwrap();
        assert_eq!(tx.commit().unwrap_err().kind(), ErrorKind::Timeout);
    });
    assert_eq!(host.file("state/cards.json").unwrap(), CARDS);
}

/// What a transaction saw may never have been stored, which shows when it ends, even without a change.
#[test]
fn a_fault_at_the_end_of_a_dropped_transaction_is_not_lost() {
    let host = host();
    with_context(&Failing::new(sdk::abi::Method::ROLLBACK, &host), |ctx| {
        drop(ctx.begin(&["cards"]).unwrap());
        assert_eq!(ctx.read("cards").unwrap_err().kind(), ErrorKind::Timeout);
    });
}

#[test]
fn another_app_dir_is_another_state() {
    let host = host();
    let other = TestHost::new();
    let dir = other.app_dir().to_str().unwrap();
    assert_eq!(host.call(UDF, &[("app_dir", dir)]), Ok(Reply::null()));
}

/// Threads of one operation share its context.
#[test]
fn a_context_can_be_shared_by_threads() {
    let host = host();
    let ctx = host.context(UDF);
    let ctx: &Context = &ctx;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(ctx.read("cards").unwrap().len(), 4));
        }
    });
}

#[test]
fn many_documents_are_read_at_once_in_order() {
    let host = host();
    let call = host.context(UDF);
    let folder = call.folder("", "many", ".lock").unwrap();
    let names: Vec<String> = (0..300).map(|n| format!("{n}.json")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (&**name, &**name)).collect();
    assert!(folder.create(&["deep"], &files).unwrap());
    let mut asked = names.clone();
    asked.insert(150, "missing.json".to_owned());
    asked.push("../outside".to_owned());
    let read = folder.read_all(&asked).unwrap();
    assert_eq!(read.len(), 302);
    for (name, text) in asked.iter().zip(&read) {
        match name.as_str() {
            "missing.json" => assert_eq!(*text, Ok(None)),
            "../outside" => assert_eq!(text.as_ref().unwrap_err().kind(), ErrorKind::Raised),
            name => assert_eq!(text.as_ref().unwrap().as_deref(), Some(name)),
        }
    }
}

#[test]
fn requests_go_out_and_settings_come_in() {
    let host = host();
    let call = host.context(UDF);
    assert!(call.http(&HttpRequest::new("GET", "http://tracker.example/")).is_err());
    host.answer_http(|request| {
        assert_eq!(request.headers, [("accept".to_owned(), "text/plain".to_owned())]);
        let body = [request.method.as_bytes(), request.url.as_bytes(), &request.body].concat();
        Ok(HttpReply { status: 201, headers: vec![("etag".into(), "x".into())], body })
    });
    let mut request =
        HttpRequest::new("POST", "http://tracker.example/").header("accept", "text/plain");
    request.body = b"!".to_vec();
    let reply = call.http(&request).unwrap();
    assert_eq!((reply.status, reply.header("etag"), reply.header("ETag")), (201, Some("x"), None));
    assert_eq!(reply.body, b"POSThttp://tracker.example/!");
    assert_eq!(call.setting("colour"), Ok(None));
    host.set_setting("colour", "red");
    assert_eq!(call.setting("colour"), Ok(Some("red".to_owned())));
}
