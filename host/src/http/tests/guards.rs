//! Who is let in, and what each of the others is told.

use super::*;

/// Name, method, target (`TOKEN` stands for the token), header fields (`host` replaces the good one, an empty value
/// removes it), body, status.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
    &'static str,
    u16,
);

const EXEC: &str = "/api/exec/udf?t=TOKEN&workspace=w&project=p";
const JSON: &str = "{\"udf\":\"op\"}";

const ROWS: &[Row] = &[
    // Names of this host.
    ("numeric", "GET", "/health", &[("host", "127.0.0.1:4567")], "", 200),
    ("by name", "GET", "/health", &[("host", "localhost:4567")], "", 200),
    ("by name, shouted", "GET", "/health", &[("host", "LOCALHOST:4567")], "", 200),
    ("IPv6", "GET", "/health", &[("host", "[::1]:4567")], "", 200),
    ("no host", "GET", "/health", &[("host", "")], "", 403),
    ("no port", "GET", "/health", &[("host", "127.0.0.1")], "", 403),
    ("wrong port", "GET", "/health", &[("host", "127.0.0.1:4568")], "", 403),
    ("longer port", "GET", "/health", &[("host", "127.0.0.1:45670")], "", 403),
    ("padded port", "GET", "/health", &[("host", "127.0.0.1:04567")], "", 403),
    ("foreign", "GET", "/health", &[("host", "evil.example")], "", 403),
    ("foreign with our port", "GET", "/health", &[("host", "evil.example:4567")], "", 403),
    ("below our name", "GET", "/health", &[("host", "localhost.evil.example:4567")], "", 403),
    (
        "our address as a label",
        "GET",
        "/health",
        &[("host", "127.0.0.1.evil.example:4567")],
        "",
        403,
    ),
    ("our name as a label", "GET", "/health", &[("host", "evil.localhost:4567")], "", 403),
    ("trailing dot", "GET", "/health", &[("host", "localhost.:4567")], "", 403),
    ("credentials", "GET", "/health", &[("host", "a@127.0.0.1:4567")], "", 403),
    ("another loopback address", "GET", "/health", &[("host", "127.0.0.2:4567")], "", 403),
    ("every address", "GET", "/health", &[("host", "0.0.0.0:4567")], "", 403),
    ("number form", "GET", "/health", &[("host", "2130706433:4567")], "", 403),
    ("long IPv6", "GET", "/health", &[("host", "[0:0:0:0:0:0:0:1]:4567")], "", 403),
    ("target of ours", "GET", "http://127.0.0.1:4567/health", &[], "", 200),
    ("target of another", "GET", "http://evil.example/health", &[], "", 403),
    ("target of another scheme", "GET", "https://127.0.0.1:4567/health", &[], "", 403),
    // Web pages.
    (
        "our own page",
        "GET",
        "/health",
        &[("origin", "http://127.0.0.1:4567"), ("sec-fetch-site", "same-origin")],
        "",
        200,
    ),
    ("our own page by name", "GET", "/health", &[("origin", "http://localhost:4567")], "", 200),
    ("null origin", "GET", "/health", &[("origin", "null")], "", 403),
    ("foreign origin", "GET", "/health", &[("origin", "http://evil.example")], "", 403),
    ("origin of another port", "GET", "/health", &[("origin", "http://127.0.0.1:4568")], "", 403),
    (
        "origin of another scheme",
        "GET",
        "/health",
        &[("origin", "https://127.0.0.1:4567")],
        "",
        403,
    ),
    ("origin with a path", "GET", "/health", &[("origin", "http://127.0.0.1:4567/")], "", 403),
    ("origin that is none", "GET", "/health", &[("origin", "127.0.0.1:4567")], "", 403),
    (
        "two origins in one",
        "GET",
        "/health",
        &[("origin", "http://127.0.0.1:4567 http://evil.example")],
        "",
        403,
    ),
    ("cross-site", "GET", "/health", &[("sec-fetch-site", "cross-site")], "", 403),
    ("another port's page", "GET", "/health", &[("sec-fetch-site", "same-site")], "", 403),
    ("unheard-of site", "GET", "/health", &[("sec-fetch-site", "friendly")], "", 403),
    ("typed into the browser", "GET", "/health", &[("sec-fetch-site", "none")], "", 200),
    // Guards come before the token, the token before routes.
    ("foreign with a bad token", "GET", "/api/udfs?t=no", &[("host", "evil.example")], "", 403),
    ("no token", "GET", "/api/udfs", &[], "", 401),
    ("empty token", "GET", "/api/udfs?t=", &[], "", 401),
    ("wrong token", "GET", "/api/udfs?t=0000", &[], "", 401),
    ("half a token", "GET", "/api/udfs?t=HALF", &[], "", 401),
    ("token and more", "GET", "/api/udfs?t=TOKEN0", &[], "", 401),
    ("wrong bearer", "GET", "/api/udfs", &[("authorization", "Bearer no")], "", 401),
    ("basic", "GET", "/api/udfs", &[("authorization", "Basic TOKEN")], "", 401),
    ("bearer without a blank", "GET", "/api/udfs", &[("authorization", "BearerTOKEN")], "", 401),
    ("token in the path", "GET", "/api/udfs/TOKEN", &[], "", 401),
    ("unknown route, no token", "GET", "/nothing", &[], "", 401),
    ("unknown route, no token, POST", "POST", "/nothing", &[], "{}", 401),
    ("unknown method, no token", "DELETE", "/api/udfs", &[], "", 401),
    ("good token", "GET", "/api/udfs?t=TOKEN", &[], "", 200),
    ("good token among others", "GET", "/api/udfs?x=1&t=TOKEN&workspace=w", &[], "", 200),
    ("bearer", "GET", "/api/udfs", &[("authorization", "Bearer TOKEN")], "", 200),
    ("bearer, lower case", "GET", "/api/udfs", &[("authorization", "bearer TOKEN")], "", 200),
    (
        "stale bearer beside a good token",
        "GET",
        "/api/udfs?t=TOKEN",
        &[("authorization", "Bearer old")],
        "",
        200,
    ),
    ("health with any token", "GET", "/health?t=no", &[], "", 200),
    // Routes and methods.
    ("unknown route", "GET", "/nothing?t=TOKEN", &[], "", 404),
    ("root", "GET", "/?t=TOKEN", &[], "", 404),
    ("trailing slash", "GET", "/health/?t=TOKEN", &[], "", 404),
    ("too few parts", "GET", "/api/udfs/w/p?t=TOKEN", &[], "", 404),
    ("too many parts", "GET", "/api/udfs/w/p/o/x?t=TOKEN", &[], "", 404),
    ("one operation that is not there", "GET", "/api/udfs/w/p/o?t=TOKEN", &[], "", 404),
    ("get on a post route", "GET", EXEC, &[], "", 405),
    ("head on a post route", "HEAD", EXEC, &[], "", 405),
    ("post on a get route", "POST", "/api/udfs?t=TOKEN", &[], "{}", 405),
    ("post on health", "POST", "/health", &[], "{}", 405),
    ("put", "PUT", EXEC, &[], JSON, 405),
    ("options", "OPTIONS", EXEC, &[], "", 405),
    (
        "preflight",
        "OPTIONS",
        EXEC,
        &[("origin", "http://evil.example"), ("access-control-request-method", "POST")],
        "",
        403,
    ),
    ("head on a get route", "HEAD", "/health", &[], "", 200),
    // Content types.
    ("json", "POST", EXEC, &[("content-type", "application/json")], JSON, 404),
    (
        "json with a charset",
        "POST",
        EXEC,
        &[("content-type", "Application/JSON; charset=UTF-8")],
        JSON,
        404,
    ),
    ("none", "POST", EXEC, &[], JSON, 404),
    ("curl -d", "POST", EXEC, &[("content-type", "application/x-www-form-urlencoded")], JSON, 404),
    (
        "a page's form",
        "POST",
        EXEC,
        &[
            ("content-type", "application/x-www-form-urlencoded"),
            ("origin", "http://127.0.0.1:4567"),
        ],
        JSON,
        415,
    ),
    (
        "a page's form, by site",
        "POST",
        EXEC,
        &[("content-type", "application/x-www-form-urlencoded"), ("sec-fetch-site", "same-origin")],
        JSON,
        415,
    ),
    ("text", "POST", EXEC, &[("content-type", "text/plain")], JSON, 415),
    (
        "text that mentions json",
        "POST",
        EXEC,
        &[("content-type", "text/plain; application/json")],
        JSON,
        415,
    ),
    (
        "text from a foreign page",
        "POST",
        EXEC,
        &[("content-type", "text/plain"), ("origin", "http://evil.example")],
        JSON,
        403,
    ),
    (
        "text with a bad token",
        "POST",
        "/api/exec/udf",
        &[("content-type", "text/plain")],
        JSON,
        415,
    ),
    ("multipart", "POST", EXEC, &[("content-type", "multipart/form-data; boundary=x")], JSON, 415),
    (
        "json in another encoding",
        "POST",
        EXEC,
        &[("content-type", "application/json; charset=utf-16")],
        JSON,
        415,
    ),
    ("empty type", "POST", EXEC, &[("content-type", " ")], JSON, 415),
    // Bodies.
    ("no body", "POST", EXEC, &[], "", 400),
    ("empty object", "POST", EXEC, &[], "{}", 400),
    ("list", "POST", EXEC, &[], "[]", 400),
    ("torn", "POST", EXEC, &[], "{\"udf\":", 400),
    ("no project", "POST", "/api/exec/udf?t=TOKEN&workspace=w", &[], JSON, 400),
    (
        "project twice",
        "POST",
        "/api/exec/udf?t=TOKEN&workspace=w&project=p&project=q",
        &[],
        JSON,
        400,
    ),
    ("by directory", "POST", "/api/exec/udf?t=TOKEN&dir=/tmp/x", &[], JSON, 400),
    (
        "qualified without an address",
        "POST",
        "/api/exec/udf?t=TOKEN",
        &[],
        "{\"udf\":\"w.p.op\"}",
        404,
    ),
    ("over the limit", "POST", EXEC, &[], LONG, 413),
    ("over the limit with a bad token", "POST", "/api/exec/udf?t=no", &[], LONG, 401),
    ("over the limit on no route", "POST", "/nothing?t=TOKEN", &[], LONG, 404),
];

const LONG: &str = {
    const BYTES: [u8; 1001] = [b' '; 1001];
    match std::str::from_utf8(&BYTES) {
        Ok(text) => text,
        Err(_) => panic!("blanks are UTF-8"),
    }
};

#[tokio::test]
async fn every_row_gets_its_status() {
    let (router, token) = empty_router(PORT);
    let fill = |text: &str| text.replace("TOKEN", &token).replace("HALF", &token[..32]);
    let mut wrong = Vec::new();
    for (name, method, target, fields, body, want) in ROWS {
        let mut request = request(method.parse().unwrap(), &fill(target), body);
        for (field, value) in *fields {
            let headers = request.headers_mut();
            let field: http::HeaderName = field.parse().unwrap();
            if value.is_empty() {
                headers.remove(field);
            } else {
                headers.insert(field, fill(value).parse().unwrap());
            }
        }
        let answer = ask(&router, request).await;
        if answer.status != *want {
            wrong.push(format!("{name}: {} instead of {want}: {}", answer.status, answer.body));
        }
        assert_eq!(answer.status == 401, answer.headers.contains_key("www-authenticate"), "{name}");
        assert_eq!(answer.status == 405, answer.headers.contains_key("allow"), "{name}");
        let told = format!("{} {:?}", answer.body, answer.headers);
        assert!(!told.contains(&token), "{name} tells the token");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(ROWS.len() >= 80);
}

#[tokio::test]
async fn doubled_fields_are_refused() {
    let (router, _) = empty_router(PORT);
    for (field, value, status) in [
        ("host", "127.0.0.1:4567", 403),
        ("origin", "http://127.0.0.1:4567", 403),
        ("sec-fetch-site", "same-origin", 403),
        ("content-type", "application/json", 415),
    ] {
        let mut request = request(Method::POST, "/api/exec/udf", "{}");
        let name: http::HeaderName = field.parse().unwrap();
        request.headers_mut().insert(name.clone(), value.parse().unwrap());
        request.headers_mut().append(name, value.parse().unwrap());
        assert_eq!(ask(&router, request).await.status, status, "{field}");
    }
}

#[tokio::test]
async fn refusals_read_well() {
    let (router, token) = empty_router(PORT);
    let mut told = String::new();
    for (method, target, body) in [
        ("GET", "/api/udfs", ""),
        ("GET", "/nothing?t=TOKEN", ""),
        ("PUT", "/health", ""),
        ("POST", EXEC, ""),
        ("POST", EXEC, "{\"udf\": 1}"),
        ("POST", EXEC, "{\"udf\": \"op\", \"overrides\": 7}"),
        ("POST", EXEC, "{\"udf\": \"op\""),
        ("POST", EXEC, "{\"udf\": \"a.b.c.d\"}"),
        ("POST", "/api/exec/udf?t=TOKEN&workspace=w", "{\"udf\": \"op\"}"),
        ("POST", EXEC, "{\"udf\": \"op\"}"),
        ("POST", EXEC, LONG),
        ("GET", "/api/udfs/w/p/o?t=TOKEN", ""),
    ] {
        let request = request(method.parse().unwrap(), &target.replace("TOKEN", &token), body);
        let answer = ask(&router, request).await;
        told.push_str(&format!("{} {}\n", answer.status, answer.body["error"].as_str().unwrap()));
    }
    insta::assert_snapshot!(told);
}

#[tokio::test]
async fn a_sane_request_id_comes_back_and_any_other_is_replaced() {
    let (router, _) = empty_router(PORT);
    for (sent, kept) in [("run-7.a", true), ("two words", false)] {
        let mut request = request(Method::GET, "/health", "");
        request.headers_mut().insert("x-request-id", sent.parse().unwrap());
        let answer = ask(&router, request).await;
        assert_eq!(answer.headers["x-request-id"] == sent, kept, "{sent}");
    }
}

#[tokio::test]
async fn the_catalog_of_an_empty_host_is_empty_and_says_why() {
    let (router, token) = empty_router(PORT);
    let answer = ask(&router, request(Method::GET, &format!("/api/udfs?t={token}"), "")).await;
    assert_eq!(answer.body["data"]["udfs"], serde_json::json!([]));
    assert_eq!(answer.body["data"]["progress"]["discovered"], true);
}
