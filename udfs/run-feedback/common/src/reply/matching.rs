//! Which option a text means, if exactly one (§16, rules 5 and 6). When in doubt nothing is found: people are asked again.

use std::collections::HashMap;
use std::ops::Range;

/// What a text means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// One answer.
    Answer {
        response: String,
        comment: String,
        /// `exact`, `index`, `lead`, `free_text`, `alias` or `word`.
        matched: &'static str,
    },
    /// `ambiguous`, `conditional` or `no_option`.
    Nothing(&'static str),
}

/// Looks for the answer in a tidied, non-empty text.
pub(super) fn find(text: &str, free_text: bool, options: &[String]) -> Found {
    let answer = |option: &str, comment: &str, matched| Found::Answer {
        response: option.to_owned(),
        comment: comment.trim().to_owned(),
        matched,
    };
    let (first_line, below) = text.split_once('\n').unwrap_or((text, ""));
    let offered = Offered::of(options);
    match offered.same(text) {
        Same::One(option) => return answer(option, "", "exact"),
        Same::Several => return Found::Nothing("ambiguous"),
        Same::None => {}
    }
    if let Some(option) = numbered(text, options) {
        return answer(option, "", "index");
    }
    match offered.same(first_line) {
        Same::One(option) => return answer(option, below, "lead"),
        Same::Several => return Found::Nothing("ambiguous"),
        Same::None => {}
    }
    if let Some((option, comment)) = before_colon(text, first_line, &offered) {
        return answer(option, comment, "lead");
    }
    if free_text {
        return Found::Answer {
            response: text.to_owned(),
            comment: String::new(),
            matched: "free_text",
        };
    }
    match synonym(first_line, options) {
        Same::One(option) => return answer(option, below, "alias"),
        Same::Several => return Found::Nothing("ambiguous"),
        Same::None => {}
    }
    match mentioned(text, options) {
        Ok(option) => answer(option, text, "word"),
        Err(reason) => Found::Nothing(reason),
    }
}

/// Lower case, `_` and `-` as blanks, runs of blanks one, `. ! * " '` and backticks off both ends.
fn folded(text: &str) -> String {
    let lower: String = text
        .to_lowercase()
        .chars()
        .map(|c| if matches!(c, '_' | '-' | '\t') { ' ' } else { c })
        .collect();
    let mut out = String::with_capacity(lower.len());
    for c in lower.trim_matches(is_ornament).chars() {
        if c != ' ' || !out.ends_with(' ') {
            out.push(c);
        }
    }
    out
}

fn is_ornament(c: char) -> bool {
    c.is_whitespace() || matches!(c, '.' | '!' | '*' | '"' | '\'' | '`')
}

#[derive(Clone, Copy)]
enum Same<'a> {
    None,
    One(&'a str),
    /// More than one option is written like this; none of them exactly so.
    Several,
}

impl<'a> Same<'a> {
    fn of(mut options: impl Iterator<Item = &'a String>) -> Same<'a> {
        match (options.next(), options.next()) {
            (None, _) => Same::None,
            (Some(option), None) => Same::One(option),
            (Some(_), Some(_)) => Same::Several,
        }
    }
}

/// The options by how they are said, so that none is looked for among all.
struct Offered<'a> {
    exact: HashMap<&'a str, &'a str>,
    alike: HashMap<String, Same<'a>>,
    /// Bytes of the longest.
    longest: usize,
}

impl<'a> Offered<'a> {
    fn of(options: &'a [String]) -> Self {
        let mut offered = Self { exact: HashMap::new(), alike: HashMap::new(), longest: 0 };
        for option in options {
            offered.exact.entry(option.trim()).or_insert(option);
            let alike = offered.alike.entry(folded(option));
            alike.and_modify(|same| *same = Same::Several).or_insert(Same::One(option));
            offered.longest = offered.longest.max(option.len());
        }
        offered
    }

    /// The option a text is.
    fn same(&self, text: &str) -> Same<'a> {
        if let Some(option) = self.exact.get(text.trim()) {
            return Same::One(option);
        }
        let wanted = folded(text);
        if wanted.is_empty() {
            return Same::None;
        }
        self.alike.get(&wanted).copied().unwrap_or(Same::None)
    }
}

/// `n`, `#n`, `n.` or `n)`, counted from 1.
fn numbered<'a>(text: &str, options: &'a [String]) -> Option<&'a str> {
    let text = text.trim_matches(is_ornament);
    let text = text.strip_prefix('#').unwrap_or_else(|| text.strip_suffix(')').unwrap_or(text));
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number: usize = text.parse().ok()?;
    options.get(number.checked_sub(1)?).map(String::as_str)
}

/// What may stand around an option before its colon, beside a form of it that is twice as long.
const MOST_ORNAMENTS: usize = 100;

/// Bytes of a lead; an option that is longer nobody writes out.
const MOST_LEAD: usize = 4096;

/// `option: comment`.
fn before_colon<'a, 't>(
    text: &'t str,
    first_line: &str,
    offered: &Offered<'a>,
) -> Option<(&'a str, &'t str)> {
    // Beyond this no colon can end an option; a line may hold thousands of them.
    let longest = (2 * offered.longest + MOST_ORNAMENTS).min(MOST_LEAD);
    let mut colons = first_line.match_indices(':').take_while(|(at, _)| *at <= longest);
    colons.find_map(|(at, _)| match offered.same(&text[..at]) {
        Same::One(option) => Some((option, &text[at + 1..])),
        Same::None | Same::Several => None,
    })
}

/// What people write for an option instead of its name.
const SYNONYMS: [(&str, &[&str]); 8] = [
    (
        "approve",
        &[
            "approved",
            "lgtm",
            "looks good",
            "looks good to me",
            "ship it",
            "go ahead",
            "proceed",
            "yes",
        ],
    ),
    ("reject", &["rejected", "no"]),
    ("request changes", &["changes requested", "needs changes", "please revise"]),
    ("retry", &["try again", "rerun"]),
    ("skip", &["bypass", "skip it"]),
    ("abort", &["stop", "give up"]),
    ("confirm", &["confirmed", "yes", "go ahead", "proceed"]),
    ("cancel", &["cancelled", "canceled", "no", "stop"]),
];

/// The offered option that a line is a synonym of.
fn synonym<'a>(line: &str, options: &'a [String]) -> Same<'a> {
    let said = folded(line);
    Same::of(options.iter().filter(|option| {
        let option = folded(option);
        SYNONYMS.iter().any(|(name, words)| *name == option && words.contains(&said.as_str()))
    }))
}

/// With apostrophes dropped, as in [`words`].
const NEGATIONS: [&str; 13] = [
    "not", "never", "no", "cannot", "cant", "dont", "doesnt", "didnt", "wont", "wouldnt",
    "without", "nor", "hardly",
];

const CONDITIONS: [&str; 10] =
    ["if", "unless", "once", "but", "except", "until", "before", "when", "after", "provided"];

/// How many words before a mention a negation reaches it.
const NEGATION_REACH: usize = 3;

/// Options that are looked for among the words of a text, and words of such an option.
const MOST_MENTIONED: usize = 1000;
const MOST_WORDS: usize = 200;

/// An option that the text names, and whether anywhere without a condition.
struct Mention<'a> {
    option: &'a str,
    words: Vec<String>,
    unconditional: bool,
}

/// The one option whose words stand in the text, sentence by sentence.
fn mentioned<'a>(text: &str, options: &'a [String]) -> Result<&'a str, &'static str> {
    if options.len() > MOST_MENTIONED {
        return Err("no_option");
    }
    let said = Sentences::of(text);
    let mut found: Vec<Mention<'a>> =
        options.iter().filter_map(|option| said.mention(option)).collect();
    let larger = |smaller: &Mention<'_>| {
        found.iter().any(|other| {
            other.words.len() > smaller.words.len()
                && smaller.words.iter().all(|word| other.words.contains(word))
        })
    };
    let keep: Vec<bool> = found.iter().map(|mention| !larger(mention)).collect();
    let mut keep = keep.into_iter();
    found.retain(|_| keep.next().unwrap_or(true));
    match found.as_slice() {
        [] => Err("no_option"),
        [only] if only.unconditional => Ok(only.option),
        [_] => Err("conditional"),
        _ => Err("ambiguous"),
    }
}

/// A text, so that looking for an option takes no longer than its first word is frequent.
struct Sentences {
    sentences: Vec<Sentence>,
    /// Where a word stands: sentence and place in it.
    places: HashMap<String, Vec<(usize, usize)>>,
}

struct Sentence {
    words: Vec<String>,
    /// How many conditions stand before each word, and in the whole.
    conditions: Vec<usize>,
}

impl Sentences {
    fn of(text: &str) -> Sentences {
        let sentences: Vec<Sentence> =
            text.split(['.', '!', '?', ';', '\n']).map(words).map(Sentence::of).collect();
        let mut places: HashMap<String, Vec<(usize, usize)>> = HashMap::new();
        for (number, sentence) in sentences.iter().enumerate() {
            for (at, word) in sentence.words.iter().enumerate() {
                places.entry(word.clone()).or_default().push((number, at));
            }
        }
        Sentences { sentences, places }
    }

    fn mention<'a>(&self, option: &'a str) -> Option<Mention<'a>> {
        let wanted = words(option);
        if wanted.len() > MOST_WORDS {
            return None;
        }
        let (mut counts, mut unconditional) = (false, false);
        for (number, at) in self.places.get(wanted.first()?).into_iter().flatten() {
            let sentence = &self.sentences[*number];
            let place = *at..*at + wanted.len();
            if sentence.words.get(place.clone()) != Some(&wanted[..]) || sentence.negates(*at) {
                continue;
            }
            counts = true;
            unconditional |= !sentence.is_conditional_around(&place);
        }
        counts.then_some(Mention { option, words: wanted, unconditional })
    }
}

impl Sentence {
    fn of(words: Vec<String>) -> Sentence {
        let mut conditions = Vec::with_capacity(words.len() + 1);
        let mut before = 0;
        for word in &words {
            conditions.push(before);
            before += usize::from(CONDITIONS.contains(&word.as_str()));
        }
        conditions.push(before);
        Sentence { words, conditions }
    }

    /// Whether a negation reaches the word at this place.
    fn negates(&self, at: usize) -> bool {
        let before = &self.words[at.saturating_sub(NEGATION_REACH)..at];
        before.iter().any(|word| NEGATIONS.contains(&word.as_str()))
    }

    /// Whether a condition stands in the sentence, outside this place.
    fn is_conditional_around(&self, place: &Range<usize>) -> bool {
        let inside = self.conditions[place.end] - self.conditions[place.start];
        self.conditions.last().is_some_and(|all| *all > inside)
    }
}

/// Lower-case words; apostrophes are dropped, everything that is neither letter nor digit separates.
fn words(text: &str) -> Vec<String> {
    let text: String =
        text.to_lowercase().chars().filter(|c| !matches!(c, '\'' | '’' | '‘' | 'ʼ')).collect();
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}
