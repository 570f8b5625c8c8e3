//! [`ProjectManifest`]: what `project.toml` says of a project and its operations.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::{Address, settings};

/// The workspace of the operations that ship with the host.
pub(crate) const SHIPPED_WORKSPACE: &str = "_core";

/// The workspace of a project that names none.
pub const DEFAULT_WORKSPACE: &str = "default";

/// What `project.toml` says. An absent file says nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ProjectManifest {
    /// The workspace, if one is named.
    pub(crate) workspace: Option<String>,
    /// The lane of all operations that name none.
    pub(crate) lane: Option<LaneChoice>,
    /// By operation.
    pub(crate) ops: BTreeMap<String, OpSettings>,
    /// Ids that a workflow had before: old id to name.
    pub(crate) aliases: BTreeMap<String, String>,
    /// Keys nobody knows, as dotted paths. They are named to the author and otherwise ignored.
    pub(crate) unknown: Vec<String>,
}

/// What `project.toml` says of one operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpSettings {
    /// How long a result may be reused.
    pub cache_max_age: Option<Duration>,
    /// Where its calls should run.
    pub lane: Option<LaneChoice>,
    /// What a call may take.
    pub timeout: Option<Duration>,
}

/// Where calls should run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum LaneChoice {
    /// In the host's own process.
    Inline,
    /// In a supervised child process.
    Worker,
}

impl LaneChoice {
    /// As `project.toml` says it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Worker => "worker",
        }
    }
}

impl OpSettings {
    /// The lane for calls of the operation at `address`: what `project.toml` says, else `inline` for those that ship
    /// with the host and `worker` for all others.
    #[must_use]
    pub fn lane_of(&self, address: &Address) -> LaneChoice {
        let shipped = &*address.workspace == SHIPPED_WORKSPACE;
        self.lane.unwrap_or(if shipped { LaneChoice::Inline } else { LaneChoice::Worker })
    }
}

impl ProjectManifest {
    /// Reads the text of a `project.toml`.
    ///
    /// # Errors
    /// Broken TOML or a value of the wrong form, in words for the author.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| one_line(&error.to_string()))?;
        let mut manifest = Self::default();
        for (key, value) in table {
            match key.as_str() {
                "workspace" => manifest.workspace = Some(workspace(&value)?),
                "lane" => manifest.lane = Some(lane("lane", &value)?),
                "udfs" => {
                    let toml::Value::Table(ops) = value else {
                        return Err("`udfs` must be a table: `[udfs.<op>]`".to_owned());
                    };
                    for (op, value) in ops {
                        let settings = manifest.op(&op, value)?;
                        manifest.ops.insert(op, settings);
                    }
                }
                // Read when an operation asks for one.
                "settings" => drop(settings::check(&value)?),
                // Read by the agent loop, where an old id of a workflow leads to its name.
                "aliases" => {
                    manifest.aliases = aliases(&value).ok_or_else(|| {
                        "`aliases` must be a table of names: `old = \"name\"`".to_owned()
                    })?;
                }
                _ => manifest.unknown.push(key),
            }
        }
        Ok(manifest)
    }

    fn op(&mut self, op: &str, value: toml::Value) -> Result<OpSettings, String> {
        let toml::Value::Table(table) = value else {
            return Err(format!("`udfs.{op}` must be a table: `[udfs.{op}]`"));
        };
        let mut settings = OpSettings::default();
        for (key, value) in table {
            let place = format!("udfs.{op}.{key}");
            match key.as_str() {
                "cache_max_age" => settings.cache_max_age = Some(duration(&place, &value)?),
                "timeout" => {
                    let time = duration(&place, &value)?;
                    if time.is_zero() {
                        return Err(format!("`{place}` is zero; a call needs some time"));
                    }
                    settings.timeout = Some(time);
                }
                "lane" => settings.lane = Some(lane(&place, &value)?),
                _ => self.unknown.push(place),
            }
        }
        Ok(settings)
    }

    /// The workspace of the project.
    pub(crate) fn workspace(&self) -> &str {
        self.workspace.as_deref().unwrap_or(DEFAULT_WORKSPACE)
    }

    /// The settings of an operation, the project's own filled in.
    pub(crate) fn settings(&self, op: &str) -> OpSettings {
        let mut settings = self.ops.get(op).copied().unwrap_or_default();
        settings.lane = settings.lane.or(self.lane);
        settings
    }
}

/// Old id to name.
fn aliases(value: &toml::Value) -> Option<BTreeMap<String, String>> {
    let table = value.as_table()?;
    table.iter().map(|(old, name)| Some((old.clone(), name.as_str()?.to_owned()))).collect()
}

fn workspace(value: &toml::Value) -> Result<String, String> {
    let name = value.as_str().ok_or("`workspace` must be a string")?;
    if is_name(name) {
        Ok(name.to_owned())
    } else {
        Err(format!("`workspace = \"{name}\"` is not a name: {NAME_RULE}"))
    }
}

/// What a workspace, project or operation may be called, in words.
pub(crate) const NAME_RULE: &str = "letters, digits, `_` and `-`, not starting with `-`";

/// Whether this may name a workspace, project or operation.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('-')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

fn lane(place: &str, value: &toml::Value) -> Result<LaneChoice, String> {
    match value.as_str() {
        Some("inline") => Ok(LaneChoice::Inline),
        Some("worker") => Ok(LaneChoice::Worker),
        _ => Err(format!("`{place} = {value}` is not a lane: expected \"inline\" or \"worker\"")),
    }
}

/// `"1500ms"`, `"30s"`, `"5m"`, `"2h"`, `"1d"`, or a whole number of seconds.
fn duration(place: &str, value: &toml::Value) -> Result<Duration, String> {
    let parsed = match value {
        toml::Value::Integer(secs) => u64::try_from(*secs).ok().map(Duration::from_secs),
        toml::Value::String(text) => parse_duration(text),
        toml::Value::Float(_)
        | toml::Value::Boolean(_)
        | toml::Value::Datetime(_)
        | toml::Value::Array(_)
        | toml::Value::Table(_) => None,
    };
    parsed.filter(|time| *time <= LONGEST).ok_or_else(|| {
        format!("`{place} = {value}` is not a time: expected seconds, or a text such as \"500ms\", \"30s\", \"5m\", and at most 365 days")
    })
}

/// No clock goes on for ever: a call's deadline lies within it.
const LONGEST: Duration = Duration::from_secs(365 * 86_400);

/// `1500ms`, `30s`, `5m`, `2h`, `1d`, or a number of seconds.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let millis = match unit.trim() {
        "ms" => 1,
        "" | "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    Some(Duration::from_millis(number.checked_mul(millis)?))
}

/// A TOML error points at its place over several lines; a listing has room for one.
fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_file_is_understood() {
        let manifest = ProjectManifest::parse(
            "workspace = \"_core\"\nlane = \"worker\"\ncolour = 1\n[udfs.a]\ncache_max_age = 60\ntimeout = \"1500ms\"\nlane = \"inline\"\n[udfs.b]\nspeed = 2\n",
        )
        .unwrap();
        assert_eq!(manifest.workspace(), "_core");
        assert_eq!(
            manifest.settings("a"),
            OpSettings {
                cache_max_age: Some(Duration::from_secs(60)),
                timeout: Some(Duration::from_millis(1500)),
                lane: Some(LaneChoice::Inline),
            }
        );
        assert_eq!(manifest.settings("none").lane, Some(LaneChoice::Worker));
        assert_eq!(manifest.unknown, ["colour", "udfs.b.speed"]);
    }

    #[test]
    fn nothing_said_means_the_defaults() {
        let manifest = ProjectManifest::parse("").unwrap();
        assert_eq!(manifest, ProjectManifest::default());
        assert_eq!(manifest.workspace(), DEFAULT_WORKSPACE);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, want) in [
            ("workspace = 1", "`workspace` must be a string"),
            ("workspace = \"a b\"", "a b"),
            ("workspace = \"\"", "is not a name"),
            ("udfs = 1", "`udfs` must be a table"),
            ("[udfs]\na = 1", "`udfs.a` must be a table"),
            ("[udfs.a]\ntimeout = \"soon\"", "udfs.a.timeout"),
            ("[udfs.a]\ntimeout = 0", "zero"),
            ("[udfs.a]\ntimeout = 9223372036854775807", "udfs.a.timeout"),
            ("[udfs.a]\ntimeout = \"366d\"", "udfs.a.timeout"),
            ("[udfs.a]\ntimeout = -1", "udfs.a.timeout"),
            ("[udfs.a]\nlane = \"fast\"", "udfs.a.lane"),
            ("workspace = \"x", "line 1"),
        ] {
            let error = ProjectManifest::parse(text).unwrap_err();
            assert!(error.contains(want), "{text:?} gave {error:?}");
            assert!(!error.contains('\n'), "{error:?}");
        }
    }

    #[test]
    fn times_have_units() {
        for (text, want) in [
            ("7", Some(7_000)),
            ("7 s", Some(7_000)),
            ("2m", Some(120_000)),
            ("1h", Some(3_600_000)),
            ("1d", Some(86_400_000)),
            ("x", None),
            ("", None),
            ("5y", None),
            ("99999999999999999999d", None),
            ("18446744073709551615d", None),
        ] {
            assert_eq!(parse_duration(text), want.map(Duration::from_millis), "{text}");
        }
    }
}
