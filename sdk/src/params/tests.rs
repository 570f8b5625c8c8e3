use proptest::prelude::*;

use super::*;
use crate::error::ErrorKind;

static PARAMS: [ParamSpec; 4] = [
    ParamSpec { name: "id", doc: "", json_type: "string", default: None, filters: None },
    ParamSpec { name: "limit", doc: "", json_type: "integer", default: Some(""), filters: None },
    ParamSpec {
        name: "status",
        doc: "",
        json_type: "string",
        default: Some("pending"),
        filters: None,
    },
    ParamSpec { name: "payload", doc: "", json_type: "json", default: Some(""), filters: None },
];
static SPEC: UdfSpec = UdfSpec { op: "list_cards", params: &PARAMS, ..UdfSpec::EMPTY };

#[track_caller]
fn check<T>(given: &[(&'static str, &'static str)], at: usize, want: Result<T, &str>)
where
    T: FromParam<'static> + PartialEq + std::fmt::Debug,
{
    let got = Arguments::new(CallFrame { params: given.to_vec() }, &SPEC)
        .and_then(|arguments| arguments.get::<T>(&PARAMS[at]));
    match (&got, &want) {
        (Err(error), Err(message)) => {
            assert_eq!((error.kind(), error.message()), (ErrorKind::BadParameter, *message));
        }
        _ => assert_eq!(got.map_err(|error| error.to_string()), want.map_err(str::to_owned)),
    }
}

#[test]
fn defaults_and_required_parameters() {
    check(&[("id", "x")], 0, Ok("x"));
    check(&[("id", "")], 0, Ok(""));
    check(&[], 0, Err::<&str, _>("`list_cards` needs the parameter `id` (string)"));
    check(&[], 1, Ok(0_u32));
    check(&[], 2, Ok("pending"));
    check(&[("status", "")], 2, Ok(""));
    check(&[], 2, Ok(Some("pending".to_owned())));
    check(&[("status", "")], 2, Ok(None::<&str>));
}

#[test]
fn a_bad_value_names_parameter_value_and_form() {
    check(
        &[("limit", "ten")],
        1,
        Err::<u8, _>("the parameter `limit` is `ten`, expected a whole number from 0 to 255"),
    );
    check(
        &[("limit", "-1")],
        1,
        Err::<Option<u8>, _>(
            "the parameter `limit` is `-1`, expected a whole number from 0 to 255",
        ),
    );
    check(
        &[("limit", "yes")],
        1,
        Err::<bool, _>("the parameter `limit` is `yes`, expected `true` or `false`"),
    );
    check(
        &[("limit", "inf")],
        1,
        Err::<f64, _>("the parameter `limit` is `inf`, expected a finite number"),
    );
    let long = "é".repeat(80);
    let text: &'static str = Box::leak(long.into_boxed_str());
    let shown = "é".repeat(60);
    check(
        &[("limit", text)],
        1,
        Err::<bool, _>(&format!("the parameter `limit` is `{shown}…`, expected `true` or `false`")),
    );
    check(
        &[("limit", "a\nb")],
        1,
        Err::<bool, _>("the parameter `limit` is `a\u{fffd}b`, expected `true` or `false`"),
    );
}

#[test]
fn json_parameters() {
    check(&[("payload", "[1, 2]")], 3, Ok(Json(vec![1, 2])));
    check(&[], 3, Ok(Json(serde_json::Value::Null)));
    check(&[], 3, Ok(Json(None::<u8>)));
    check(&[], 3, Ok(JsonText::parse("null").unwrap()));
    check(&[], 3, Ok(Json(Vec::<u8>::new())));
    check(&[("payload", "")], 3, Ok(Json(std::collections::BTreeMap::<String, u8>::new())));
    check(&[], 3, Ok(Json(String::new())));
    check(&[], 3, Ok(Json(0_u8)));
    check(&[], 3, Ok(Json(false)));
    let big = r#"{"n":123456789012345678901234567890,"s":"\ud800"}"#;
    check(&[("payload", big)], 3, Ok(JsonText::parse(big).unwrap()));
    let error = Arguments::new(CallFrame { params: vec![("payload", "{")] }, &SPEC)
        .unwrap()
        .get::<JsonText>(&PARAMS[3])
        .unwrap_err();
    assert!(
        error.message().starts_with("the parameter `payload` is `{`, expected JSON ("),
        "{error}"
    );
}

#[test]
fn an_undeclared_parameter_names_the_allowed_ones() {
    check(
        &[("limits", "1")],
        1,
        Err::<u8, _>(
            "`list_cards` has no parameter `limits`; it takes `id`, `limit`, `status`, `payload`, and \
             `app_dir`",
        ),
    );
    static ONE: UdfSpec =
        UdfSpec { op: "get_card", params: PARAMS.split_at(1).0, ..UdfSpec::EMPTY };
    let error = Arguments::new(CallFrame { params: vec![("x", "1")] }, &ONE).unwrap_err();
    assert_eq!(error.message(), "`get_card` has no parameter `x`; it takes `id` and `app_dir`");
    static NONE: UdfSpec = UdfSpec { op: "sweep", ..UdfSpec::EMPTY };
    let error = Arguments::new(CallFrame { params: vec![("x", "1")] }, &NONE).unwrap_err();
    assert_eq!(error.message(), "`sweep` has no parameter `x`; it takes only `app_dir`");
}

#[test]
fn many_params_are_told_apart() {
    let params: Params = (0..200_000).map(|n| (format!("k{}", n / 2), n.to_string())).collect();
    assert_eq!(params.iter().len(), 100_000);
    assert!((params.iter().zip(0..)).all(|((_, text), n)| *text == (2 * n + 1).to_string()));
}

proptest! {
    #[test]
    fn numbers_read_back(n in any::<i64>(), x in proptest::num::f64::NORMAL) {
        prop_assert_eq!(i64::from_param(&n.to_string()), Ok(n));
        prop_assert_eq!(f64::from_param(&x.to_string()), Ok(x));
        prop_assert_eq!(u8::from_param(&n.to_string()).is_ok(), (0..=255).contains(&n));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[-+0-9._eExinfINFNa ]{0,8}|[\\[\\]{}:,\"a\\\\0-9 -]{0,12}|.*") {
        prop_assert_eq!(<&str>::from_param(&text), Ok(text.as_str()));
        let _ = bool::from_param(&text);
        let _ = f64::from_param(&text);
        let _ = Option::<u16>::from_param(&text);
        let _ = JsonText::from_param(&text);
        let _ = Json::<serde_json::Value>::from_param(&text);
    }

    #[test]
    fn params_are_a_map_in_order(pairs in proptest::collection::vec(("[a-f]{1,2}", ".{0,3}"), 0..80)) {
        let params: Params = pairs.iter().cloned().collect();
        let mut one_by_one = Params::new();
        pairs.iter().for_each(|(name, text)| one_by_one.insert(name, text));
        prop_assert_eq!(&params, &one_by_one);
        let names: std::collections::BTreeSet<_> = params.iter().map(|(name, _)| name).collect();
        prop_assert_eq!(names.len(), params.iter().len());
        for (name, _) in &pairs {
            let last = pairs.iter().rev().find(|(known, _)| known == name);
            prop_assert_eq!(params.get(name), last.map(|(_, text)| text.as_str()));
        }
    }
}
