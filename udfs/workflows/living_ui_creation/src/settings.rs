//! [`Settings`]: the commands of the launch pipeline and of the tunnel. Built in, overridden per member by
//! `living-ui/pipeline.json` of the state folder, and by what was configured for the one app.

use std::time::Duration;

use sdk::prelude::*;

/// One app's settings, complete.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    pub(crate) serve: Serve,
    pub(crate) schema: Option<SchemaStep>,
    pub(crate) types: Option<Step>,
    pub(crate) build: Option<Step>,
    pub(crate) health: Health,
    pub(crate) tunnel: Option<Tunnel>,
    /// How long a served app lives at most.
    pub(crate) lease: Duration,
    pub(crate) env: Vec<(String, String)>,
}

/// A program that is waited for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Step {
    pub(crate) command: Vec<String>,
    pub(crate) within: Duration,
}

/// The program that serves the app.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Serve {
    pub(crate) command: Vec<String>,
    /// How long it may take until it listens.
    pub(crate) within: Duration,
    /// A port of its own; `None` is one that is free.
    pub(crate) port: Option<u16>,
}

/// How the schema gets into the app's database.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SchemaStep {
    /// File below the app's sources.
    pub(crate) file: String,
    pub(crate) how: SchemaImport,
    pub(crate) within: Duration,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SchemaImport {
    /// Over the interface of a PocketBase, as an administrator that this command makes.
    PocketBase { superuser: Vec<String> },
    /// By a program, which gets the file in its present form as `{schema}`.
    Command(Vec<String>),
}

/// How it is found out that the app works.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Health {
    /// This path answers with a status below 400.
    Path(String, Duration),
    Command(Step),
}

/// The program that gives the app a public address.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tunnel {
    pub(crate) command: Vec<String>,
    /// What the address has in it.
    pub(crate) contains: String,
    pub(crate) within: Duration,
}

const DEFAULTS: &str = r#"{
  "pocketbase": "pocketbase",
  "serve": {
    "command": ["{pocketbase}", "serve", "--http=127.0.0.1:{port}", "--dir={data}", "--publicDir={app}/frontend"],
    "seconds": 60
  },
  "schema": {
    "file": "backend/schema.json",
    "superuser": ["{pocketbase}", "superuser", "upsert", "{email}", "{password}", "--dir={data}"],
    "seconds": 60
  },
  "types": null,
  "build": null,
  "health": {"path": "/", "seconds": 30},
  "tunnel": null,
  "lease_hours": 12,
  "env": {}
}"#;

/// A member of the settings and what it may hold.
const KNOWN: [(&str, &[&str]); 9] = [
    ("pocketbase", &[]),
    ("serve", &["command", "seconds", "port"]),
    ("schema", &["file", "superuser", "command", "seconds"]),
    ("types", &["command", "seconds"]),
    ("build", &["command", "seconds"]),
    ("health", &["path", "command", "seconds"]),
    ("tunnel", &["command", "contains", "seconds"]),
    ("lease_hours", &[]),
    ("env", &[]),
];

/// Checks one document of settings; gives it back as an object.
///
/// # Errors
/// It is no object, or holds something unknown; the text names it.
pub(crate) fn checked(value: &Value) -> Result<Map, String> {
    let Value::Object(map) = value else { return Err("settings are an object".to_owned()) };
    for (key, value) in map {
        let Some((_, members)) = KNOWN.iter().find(|(known, _)| known == key) else {
            let known: Vec<&str> = KNOWN.iter().map(|(known, _)| *known).collect();
            return Err(format!("settings know no `{key}`; known: {}", known.join(", ")));
        };
        if let (Value::Object(inner), false) = (value, members.is_empty()) {
            for member in inner.keys() {
                if !members.contains(&member.as_str()) {
                    return Err(format!(
                        "`{key}` knows no `{member}`; known: {}",
                        members.join(", ")
                    ));
                }
            }
        }
    }
    Ok(map.clone())
}

/// An object of settings.
pub(crate) type Map = sdk::Map<String, Value>;

impl Settings {
    /// The built-in settings under these layers, each member of a later one in place of that of an earlier.
    ///
    /// # Errors
    /// A member has the wrong form; the text names it.
    pub(crate) fn layered(layers: &[Map]) -> Result<Self, String> {
        let mut all = match DEFAULTS.parse() {
            Ok(Value::Object(map)) => map,
            other => return Err(format!("the built-in settings are broken: {other:?}")),
        };
        for layer in layers {
            for (key, value) in layer {
                // A step given in part keeps what it does not name, but never a second way to do the same.
                match (all.get_mut(key), value) {
                    (Some(Value::Object(old)), Value::Object(new)) if key != "env" => {
                        if new.contains_key("command") {
                            old.retain(|key, _| !matches!(key.as_str(), "superuser" | "path"));
                        }
                        if new.contains_key("superuser") || new.contains_key("path") {
                            old.shift_remove("command");
                        }
                        old.extend(new.clone());
                    }
                    _ => {
                        all.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        let at = |key: &str| all.get(key).unwrap_or(&Value::Null);
        let pocketbase =
            at("pocketbase").as_str().ok_or("`pocketbase` is the name of a program")?;
        let read = Reader { pocketbase };
        let step = |key: &str| match at(key) {
            Value::Null => Ok(None),
            value => Ok::<_, String>(Some(Step {
                command: read.command(key, value, "command")?,
                within: read.seconds(key, value, 600)?,
            })),
        };
        let serve = at("serve");
        let port = match serve.get("port") {
            None | Some(Value::Null) => None,
            Some(port) => Some(
                port.as_u64()
                    .and_then(|port| u16::try_from(port).ok())
                    .filter(|port| *port > 0)
                    .ok_or("`serve.port` is no port")?,
            ),
        };
        let schema = match at("schema") {
            Value::Null => None,
            value => Some(SchemaStep {
                file: text(value, "file").ok_or("`schema.file` is missing")?,
                how: if value.get("command").is_some_and(|command| !command.is_null()) {
                    SchemaImport::Command(read.command("schema", value, "command")?)
                } else {
                    SchemaImport::PocketBase {
                        superuser: read.command("schema", value, "superuser")?,
                    }
                },
                within: read.seconds("schema", value, 60)?,
            }),
        };
        let health = at("health");
        let within = read.seconds("health", health, 30)?;
        let health = match (text(health, "path"), health.get("command")) {
            (None, Some(_)) => Health::Command(Step {
                command: read.command("health", health, "command")?,
                within,
            }),
            (Some(path), _) if path.starts_with('/') => Health::Path(path, within),
            _ => {
                return Err(
                    "`health` needs a `path` that starts with `/`, or a `command`".to_owned()
                );
            }
        };
        let tunnel = match at("tunnel") {
            Value::Null => None,
            value => Some(Tunnel {
                command: read.command("tunnel", value, "command")?,
                contains: text(value, "contains").unwrap_or_default(),
                within: read.seconds("tunnel", value, 60)?,
            }),
        };
        let hours =
            at("lease_hours").as_f64().filter(|hours| (0.001..=24.0 * 365.0).contains(hours));
        let hours = hours.ok_or("`lease_hours` is a number of hours, up to a year")?;
        let env = match at("env") {
            Value::Object(env) => env
                .iter()
                .map(|(name, value)| {
                    let value = value.as_str().ok_or(format!("`env.{name}` is no text"))?;
                    Ok((name.clone(), value.to_owned()))
                })
                .collect::<Result<_, String>>()?,
            _ => return Err("`env` is an object of texts".to_owned()),
        };
        Ok(Self {
            serve: Serve {
                command: read.command("serve", serve, "command")?,
                within: read.seconds("serve", serve, 60)?,
                port,
            },
            schema,
            types: step("types")?,
            build: step("build")?,
            health,
            tunnel,
            lease: Duration::from_secs_f64(hours * 3600.0),
            env,
        })
    }
}

/// Reads members of a step.
struct Reader<'a> {
    pocketbase: &'a str,
}

impl Reader<'_> {
    fn command(&self, step: &str, value: &Value, key: &str) -> Result<Vec<String>, String> {
        let words = value.get(key).and_then(Value::as_array).and_then(|words| {
            words
                .iter()
                .map(|word| Some(word.as_str()?.replace("{pocketbase}", self.pocketbase)))
                .collect()
        });
        let words: Vec<String> = words.unwrap_or_default();
        if words.first().is_none_or(|program| program.is_empty()) {
            return Err(format!("`{step}.{key}` is a list of texts: a program and its arguments"));
        }
        Ok(words)
    }

    fn seconds(&self, step: &str, value: &Value, default: u64) -> Result<Duration, String> {
        let seconds = match value.get("seconds") {
            None | Some(Value::Null) => Some(default),
            Some(seconds) => seconds.as_u64().filter(|seconds| (1..=86_400).contains(seconds)),
        };
        let seconds =
            seconds.ok_or(format!("`{step}.seconds` is a whole number from 1 to 86400"))?;
        Ok(Duration::from_secs(seconds))
    }
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Fills `{name}` in every word of a command.
pub(crate) fn filled(command: &[String], places: &[(&str, &str)]) -> Vec<String> {
    let fill = |word: &String| {
        places
            .iter()
            .fold(word.clone(), |word, (name, value)| word.replace(&format!("{{{name}}}"), value))
    };
    command.iter().map(fill).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(value: Value) -> Map {
        checked(&value).unwrap()
    }

    #[test]
    fn layers_override_each_other_by_step() {
        let plain = Settings::layered(&[]).unwrap();
        assert_eq!(plain.serve.command[0], "pocketbase");
        assert!(plain.build.is_none() && plain.tunnel.is_none() && plain.serve.port.is_none());
        let settings = Settings::layered(&[
            layer(json!({"pocketbase": "/opt/pb", "build": {"command": ["npm", "run", "build"]}})),
            layer(json!({"serve": {"port": 8090}, "health": {"command": ["true"]}, "build": {"seconds": 7},
                "schema": {"command": ["load", "{schema}"]}, "tunnel": {"command": ["t", "{url}"], "contains": "try"}})),
        ])
        .unwrap();
        assert_eq!(
            (settings.serve.command[0].as_str(), settings.serve.port),
            ("/opt/pb", Some(8090))
        );
        let build = settings.build.unwrap();
        assert_eq!((build.command.len(), build.within), (3, Duration::from_secs(7)));
        assert!(matches!(settings.health, Health::Command(_)));
        assert_eq!(
            settings.schema.unwrap().how,
            SchemaImport::Command(vec!["load".into(), "{schema}".into()])
        );
        assert_eq!(settings.tunnel.unwrap().contains, "try");
        let back = Settings::layered(&[
            layer(json!({"health": {"command": ["true"]}, "schema": null})),
            layer(json!({"health": {"path": "/up"}})),
        ])
        .unwrap();
        assert_eq!(back.health, Health::Path("/up".into(), Duration::from_secs(30)));
        assert!(back.schema.is_none());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (value, want) in [
            (json!([]), "an object"),
            (json!({"server": {}}), "know no `server`"),
            (json!({"serve": {"cmd": []}}), "`serve` knows no `cmd`"),
        ] {
            assert!(checked(&value).unwrap_err().contains(want), "{value}");
        }
        for (value, want) in [
            (json!({"serve": null}), "`serve.command`"),
            (json!({"serve": {"command": "x"}}), "`serve.command`"),
            (json!({"serve": {"command": [""]}}), "`serve.command`"),
            (json!({"serve": {"port": 70000}}), "`serve.port`"),
            (json!({"build": {"command": ["x"], "seconds": 0}}), "`build.seconds`"),
            (json!({"health": {"path": "x"}}), "`health`"),
            (json!({"lease_hours": 0}), "`lease_hours`"),
            (json!({"env": {"A": 1}}), "`env.A`"),
            (json!({"pocketbase": 1}), "`pocketbase`"),
        ] {
            let error = Settings::layered(&[layer(value.clone())]).unwrap_err();
            assert!(error.contains(want), "{value}: {error}");
        }
    }

    #[test]
    fn places_are_filled() {
        let words = ["{app}/x".to_owned(), "--http={port}".to_owned(), "{other}".to_owned()];
        assert_eq!(
            filled(&words, &[("app", "/a"), ("port", "7")]),
            ["/a/x", "--http=7", "{other}"]
        );
    }
}
