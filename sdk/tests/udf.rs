//! What `#[udf]` makes of a function: descriptor, parameters, and an entry that no panic leaves.

use std::panic::panic_any;

use sdk::abi::INTERFACE_VERSION;
use sdk::host::{Descriptor, HostService, invoke};
use sdk::prelude::*;
use sdk::testing::TestHost;
use sdk::{Params, abi};

const COLUMNS: &[Column] = &[Column::text("id"), Column::new("n", ColumnKind::Integer)];

/// Tries `how` to misbehave.
///
/// Second paragraph.
#[udf(
    reads("tasks"),
    writes("cards", "comments"),
    calls("other.op"),
    logs("runs"),
    net,
    folders,
    columns(COLUMNS),
    rows("list")
)]
fn r#try(
    ctx: &Context,
    /// What to do.
    ///
    /// At length.
    how: &str,
    #[arg(default = "pending")] status: String,
    r#type: Option<&str>,
    #[arg(default = -3)] n: i64,
    #[arg(default)] flag: bool,
    #[arg(default)] ratio: f64,
    #[arg(default)] list: Json<Option<Vec<u8>>>,
    #[arg(default)] raw: JsonText,
    _rev: Option<u32>,
) -> Result<Reply, UdfError> {
    let _bomb = match how {
        "panic in a drop" => Some(Bomb("local".to_owned())),
        _ => None,
    };
    match how {
        "panic with a literal" => panic!("plain"),
        "panic with a text" => panic!("n is {n}"),
        "panic with a number" => panic_any(7),
        "panic with a bomb" => panic_any(Bomb("payload".to_owned())),
        "unwrap" => {
            let nothing: Option<u8> = r#type.and(None);
            Ok(Reply::value(&nothing.expect("there is something")))
        }
        "index" => Ok(Reply::value(&[0][status.len()])),
        "panic in a transaction" => {
            let tx = ctx.begin(&["cards"])?;
            tx.collection("cards")?.push(Object::new().set("id", "lost"))?;
            panic!("before the commit");
        }
        "raise" => Err(UdfError::raised("no, because of the moon")),
        "bad reply" => {
            let map: std::collections::HashMap<Vec<u8>, u8> = [(vec![1], 1)].into();
            Ok(Reply::value(&map))
        }
        _ => Ok(Reply::json(
            Object::new()
                .set("how", how)
                .set("status", status)
                .set("type", r#type)
                .set("n", n)
                .set("flag", flag)
                .set("ratio", ratio)
                .set("list", list.0.map(|list| list.len()))
                .set("raw", raw),
        )),
    }
}

struct Bomb(String);

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("{} dropped", self.0);
        }
    }
}

#[test]
fn the_descriptor_says_all_of_it() {
    let descriptor = Descriptor::of(UDF.plugin()).unwrap();
    assert_eq!(descriptor.interface, INTERFACE_VERSION);
    assert_eq!(UDF.plugin().interface(), INTERFACE_VERSION);
    assert!(descriptor.changes());
    assert_eq!((descriptor.op.as_str(), descriptor.project), ("try", None));
    assert_eq!(descriptor.doc, "Tries `how` to misbehave.\n\nSecond paragraph.");
    assert_eq!(descriptor.panic, "unwind");
    let params: Vec<_> = descriptor
        .params
        .iter()
        .map(|p| (p.name.as_str(), p.json_type.as_str(), p.default.as_deref(), p.required))
        .collect();
    assert_eq!(
        params,
        [
            ("how", "string", None, true),
            ("status", "string", Some("pending"), false),
            ("type", "string", Some(""), false),
            ("n", "integer", Some("-3"), false),
            ("flag", "boolean", Some(""), false),
            ("ratio", "number", Some(""), false),
            ("list", "json", Some(""), false),
            ("raw", "json", Some(""), false),
            ("rev", "integer", Some(""), false),
        ]
    );
    assert_eq!(descriptor.params[0].doc, "What to do.\n\nAt length.");
    assert_eq!(descriptor.reads, ["tasks"]);
    assert_eq!(descriptor.writes, ["cards", "comments"]);
    assert_eq!((descriptor.calls, descriptor.logs), (vec!["other.op".into()], vec!["runs".into()]));
    assert!(descriptor.net && descriptor.folders && !descriptor.folders_read_only);
    assert_eq!(descriptor.rows.as_deref(), Some("list"));
    let columns: Vec<_> =
        descriptor.columns.iter().map(|c| (c.name.as_str(), c.kind.as_str())).collect();
    assert_eq!(columns, [("id", "s"), ("n", "i")]);
}

#[test]
fn parameters_arrive_as_texts() {
    let host = TestHost::new();
    assert_eq!(
        host.call_json(UDF, &[("how", "tell")]),
        json!({"how": "tell", "status": "pending", "type": null, "n": -3, "flag": false, "ratio": 0.0,
               "list": null, "raw": null})
    );
    let raw = r#"{"big":123456789012345678901234567890,"deep":[[[]]],"lone":"\ud800"}"#;
    let reply = host
        .call(
            UDF,
            &[
                ("how", ""),
                ("status", ""),
                ("type", "x"),
                ("n", "9007199254740993"),
                ("flag", "true"),
                ("ratio", "1e-7"),
                ("list", "[1,2]"),
                ("raw", raw),
                ("rev", "7"),
                ("app_dir", ""),
            ],
        )
        .unwrap();
    assert_eq!(
        reply.to_json().unwrap(),
        format!(
            r#"{{"how":"","status":"","type":"x","n":9007199254740993,"flag":true,"ratio":1e-07,"list":2,"raw":{raw}}}"#
        )
    );
}

#[test]
fn bad_parameters_are_named() {
    let host = TestHost::new();
    for (params, want) in [
        (&[][..], "`try` needs the parameter `how` (string)"),
        (
            &[("how", "x"), ("n", "many")],
            "the parameter `n` is `many`, expected a whole number from -9223372036854775808 to \
             9223372036854775807",
        ),
        (
            &[("how", "x"), ("_rev", "1")],
            "`try` has no parameter `_rev`; it takes `how`, `status`, `type`, `n`, `flag`, `ratio`, \
             `list`, `raw`, `rev`, and `app_dir`",
        ),
    ] {
        let error = host.call(UDF, params).unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::BadParameter, want));
    }
}

#[test]
fn no_panic_leaves_the_entry() {
    let host = TestHost::new();
    host.seed("cards", "[]");
    for (how, want) in [
        ("panic with a literal", "plain"),
        ("panic with a text", "n is -3"),
        ("panic with a number", "a value that is not a text"),
        ("panic with a bomb", "a value that is not a text"),
        ("panic in a drop", "local dropped"),
        ("unwrap", "there is something"),
        ("index", "index out of bounds: the len is 1 but the index is 7"),
        ("panic in a transaction", "before the commit"),
    ] {
        let error = host.call(UDF, &[("how", how)]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Panicked, "{how}");
        assert_eq!(error.message(), format!("`try` panicked: {want}"), "{how}");
        // The next call is none the worse, and may lock what the last one had locked.
        assert!(host.call(UDF, &[("how", "tell")]).is_ok(), "{how}");
        assert!(host.context(UDF).begin(&["cards"]).is_ok(), "{how}");
    }
    assert_eq!(host.file("state/cards.json").unwrap(), "[]");
}

#[test]
fn errors_keep_their_kind() {
    let host = TestHost::new();
    let error = host.call(UDF, &[("how", "raise")]).unwrap_err();
    assert_eq!(error, UdfError::raised("no, because of the moon"));
    let error = host.call(UDF, &[("how", "bad reply")]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
}

#[test]
fn the_function_stays_callable() {
    let host = TestHost::new();
    let ctx = host.context(UDF);
    let raw = JsonText::parse("1").unwrap();
    let reply = r#try(&ctx, "x", "s".into(), None, 1, true, 0.5, Json(None), raw, None).unwrap();
    assert!(reply.to_json().unwrap().contains(r#""ratio":0.5"#));
}

/// A host that panics when asked, and one that is older than the plugin.
struct BadHost;

impl HostService for BadHost {
    fn call(&self, method: abi::Method, _: &[u8]) -> Result<Vec<u8>, UdfError> {
        match method {
            abi::Method::BEGIN => panic!("the host is unwell"),
            _ => Err(self.unsupported(method)),
        }
    }

    fn cancelled(&self) -> bool {
        panic!("also here")
    }
}

#[test]
fn a_panic_of_the_host_does_not_reach_the_plugin() {
    let params: Params = [("how", "panic in a transaction")].into_iter().collect();
    let error = invoke(UDF.plugin(), &BadHost, &params).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Internal);
    assert_eq!(error.message(), "the host panicked at request 5: the host is unwell");
    assert!(sdk::host::with_context(&BadHost, |ctx| ctx.cancelled()));
}

#[test]
fn a_request_the_host_does_not_know_is_a_typed_error() {
    sdk::host::with_context(&BadHost, |ctx| {
        let error = ctx.read("cards").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.message().contains("update the host"), "{error}");
    });
}

/// The macro writes abi_stable's symbol as a literal.
#[test]
fn the_symbol_is_the_one_hosts_look_for() {
    assert_eq!(
        abi_stable::library::ROOT_MODULE_LOADER_NAME,
        "_1as_0lib_1header_0root_bmodule_bloader"
    );
    let source = include_str!("../macros/src/expand.rs");
    assert!(source.contains(&format!(
        "#[unsafe(export_name = \"{}\")]",
        abi_stable::library::ROOT_MODULE_LOADER_NAME
    )));
}
