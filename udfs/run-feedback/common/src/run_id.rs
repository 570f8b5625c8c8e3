//! One grammar for run ids, and the only way from an id to a path (§3).

use std::fmt;

/// Where runs live unless `base_path` says otherwise; relative to the working directory.
pub const DEFAULT_BASE: &str = ".fractary/plugins/faber/runs";

/// `org/project/uuid`, checked: none of the segments can leave its directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId {
    org: String,
    project: String,
    uuid: String,
}

impl RunId {
    /// Reads a whole string; blanks, newlines or anything else around an id make it none.
    pub fn parse(text: &str) -> Option<RunId> {
        let mut parts = text.split('/');
        let (org, project, uuid) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        RunId::from_segments(org, project, uuid)
    }

    /// Builds an id from three directory names; `None` if one of them does not fit the grammar.
    pub fn from_segments(org: &str, project: &str, uuid: &str) -> Option<RunId> {
        (is_segment(org) && is_segment(project) && is_uuid(uuid)).then(|| RunId {
            org: org.to_owned(),
            project: project.to_owned(),
            uuid: uuid.to_owned(),
        })
    }

    /// First segment.
    pub fn org(&self) -> &str {
        &self.org
    }

    /// Second segment.
    pub fn project(&self) -> &str {
        &self.project
    }

    /// Third segment, lower-case hexadecimal `8-4-4-4-12`.
    pub fn uuid(&self) -> &str {
        &self.uuid
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.org, self.project, self.uuid)
    }
}

/// Whether `name` may be the first or second segment: lower-case letters and digits at both ends, `_` and `-` inside.
fn is_segment(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
    let end = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = name.as_bytes();
    end(bytes.first()) && end(bytes.last()) && bytes.iter().all(|&b| inner(b))
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_digit() || (b'a'..=b'f').contains(&b),
        })
}

/// The paths of one run as they are shown to callers: the base as it was given, then the id.
#[derive(Debug, Clone)]
pub struct RunPaths {
    base: String,
    id: RunId,
}

impl RunPaths {
    /// `base` empty means [`DEFAULT_BASE`].
    pub fn new(base: &str, id: &RunId) -> RunPaths {
        RunPaths { base: RunPaths::base(base).to_owned(), id: id.clone() }
    }

    /// The base directory a `base_path` parameter stands for.
    pub fn base(param: &str) -> &str {
        match param.trim_end_matches('/') {
            "" if param.is_empty() => DEFAULT_BASE,
            "" => "/",
            trimmed => trimmed,
        }
    }

    /// `{base}/{org}/{project}/{uuid}`.
    pub fn run_dir(&self) -> String {
        match self.base.as_str() {
            "/" => format!("/{}", self.id),
            base => format!("{base}/{}", self.id),
        }
    }

    /// A path below the run directory.
    pub fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.run_dir())
    }
}

/// Makes a segment of any text: lower case, every foreign character `-`, runs of `-` one, no `-` or `_` at the ends.
///
/// `None` if nothing is left.
pub fn sanitise_segment(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    for c in text.chars().flat_map(char::to_lowercase) {
        let c = if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' { c } else { '-' };
        if c != '-' || !out.ends_with('-') {
            out.push(c);
        }
    }
    let segment = out.trim_matches(['-', '_']);
    (!segment.is_empty()).then(|| segment.to_owned())
}

/// The owner in a remote's address: `git@host:owner/repo.git`, `https://host/owner/repo`, `ssh://git@host:22/owner/repo`.
///
/// Of a nested path it is the part right before the repository. A directory of this machine has none.
pub fn owner_of_remote(url: &str) -> Option<&str> {
    let path = match url.trim().split_once("://") {
        Some(("file", _)) => return None,
        Some((_, rest)) => rest.split_once('/')?.1,
        // As git has it: a slash before the first colon makes it a path.
        None => url.trim().split_once(':').filter(|(host, _)| !host.contains('/'))?.1,
    };
    let mut parts = path.trim_matches('/').rsplit('/');
    let _repository = parts.next()?;
    parts.next().filter(|owner| !owner.is_empty())
}

/// A version 4 UUID out of 16 random bytes.
pub fn uuid_v4(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut out = String::with_capacity(36);
    for (at, byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push('-');
        }
        out.push_str(&format!("{byte:02x}"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "0f0e0d0c-0b0a-4908-8706-050403020100";

    #[test]
    fn accepts_one_grammar() {
        for (org, project) in [("a", "widgets"), ("acme", "b"), ("a-b_c", "0x-9"), ("9", "9")] {
            let text = format!("{org}/{project}/{UUID}");
            let id = RunId::parse(&text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((id.org(), id.project(), id.uuid()), (org, project, UUID));
            assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn refuses_everything_else() {
        let bad = [
            "".to_owned(),
            UUID.to_owned(),
            format!("acme/{UUID}"),
            format!("/acme/widgets/{UUID}"),
            format!("acme/widgets/{UUID}/"),
            format!("acme/widgets/more/{UUID}"),
            format!("acme//{UUID}"),
            format!("Acme/widgets/{UUID}"),
            format!("acme/wid.gets/{UUID}"),
            format!("acme/../{UUID}"),
            format!("-acme/widgets/{UUID}"),
            format!("acme_/widgets/{UUID}"),
            format!("acme/widgets-/{UUID}"),
            format!(" acme/widgets/{UUID}"),
            format!("acme/widgets/{UUID}\n"),
            format!("../../x\nacme/widgets/{UUID}"),
            format!("acme/widgets/{UUID}\n../x"),
            format!("acme/widgets/{}", UUID.to_uppercase()),
            "acme/widgets/abc-123".to_owned(),
            "-/_/------------------------------------".to_owned(),
            format!("acmé/widgets/{UUID}"),
        ];
        for text in bad {
            assert_eq!(RunId::parse(&text), None, "{text:?}");
        }
    }

    #[test]
    fn paths_show_the_base_as_given() {
        let id = RunId::parse(&format!("acme/widgets/{UUID}")).unwrap();
        for (base, dir) in [
            ("", format!("{DEFAULT_BASE}/acme/widgets/{UUID}")),
            ("var/runs", format!("var/runs/acme/widgets/{UUID}")),
            ("var/runs/", format!("var/runs/acme/widgets/{UUID}")),
            ("/", format!("/acme/widgets/{UUID}")),
        ] {
            assert_eq!(RunPaths::new(base, &id).run_dir(), dir, "{base}");
        }
        assert_eq!(
            RunPaths::new("b", &id).file("events/.next-id"),
            format!("b/acme/widgets/{UUID}/events/.next-id")
        );
    }

    #[test]
    fn sanitises_names() {
        for (text, want) in [
            ("Acme", Some("acme")),
            ("My Org, Inc.", Some("my-org-inc")),
            ("--a--b--", Some("a-b")),
            ("_a_", Some("a")),
            ("-_a_-", Some("a")),
            ("wid_gets", Some("wid_gets")),
            ("Ünïcode", Some("n-code")),
            ("...", None),
            ("", None),
            ("__", None),
        ] {
            let got = sanitise_segment(text);
            assert_eq!(got.as_deref(), want, "{text}");
            assert!(got.is_none_or(|segment| is_segment(&segment)), "{text}");
        }
    }

    #[test]
    fn finds_the_owner() {
        for (url, want) in [
            ("git@github.com:acme/widgets.git", Some("acme")),
            ("https://github.com/acme/widgets.git", Some("acme")),
            ("https://user:token@example.com/acme/widgets/", Some("acme")),
            ("ssh://git@example.com:22/acme/widgets", Some("acme")),
            ("https://example.com/group/sub/widgets", Some("sub")),
            ("/srv/git/widgets.git", None),
            ("./a:b/widgets.git", None),
            ("file:///srv/git/widgets.git", None),
            ("https://example.com/widgets", None),
            ("", None),
        ] {
            assert_eq!(owner_of_remote(url), want, "{url}");
        }
    }

    #[test]
    fn uuids_are_version_4() {
        for seed in [0u8, 0x5a, 0xff] {
            let uuid = uuid_v4([seed; 16]);
            assert!(is_uuid(&uuid), "{uuid}");
            assert_eq!(&uuid[14..15], "4");
            assert!(matches!(&uuid[19..20], "8" | "9" | "a" | "b"), "{uuid}");
        }
    }
}
