//! Asking and answering where the caller sits: banners, the question, and the answer of whoever is at the terminal.

use std::io::{self, IsTerminal};

use serde_json::{Value, json};

use super::project::{Params, Project, Said, of_run, value};
use super::question::{self, Question};
use super::{banner, is_refusal, pretty, print, refused, say};
use crate::cli::Exit;
use crate::error::HostError;

impl Project {
    /// Asks. The question is shown before its flag is raised, so that the flag tells the truth.
    pub(super) fn request(&self, mut params: Params) -> Result<Exit, HostError> {
        say(&banner::request_start(&params));
        let shown = value(&params, "cli_prompt") != "false";
        params.retain(|(name, _)| name != "cli_prompt");
        params.push(("cli_prompt".to_owned(), "false".to_owned()));
        let mut reply = self.call_json("request_feedback", &params)?;
        if is_refusal(&reply) {
            return refused(&reply);
        }
        let question = if shown { self.question(&params, &reply)? } else { None };
        if let Some(question) = &question
            && say(&question.text())
        {
            self.mark_shown(&params, &mut reply)?;
        }
        print(&pretty(&reply)?)?;
        say(&banner::request_end(&reply));
        match question {
            Some(question) if is_answered_here() => self.ask(&params, &reply, &question),
            _ => Ok(Exit::Done),
        }
    }

    /// The question as it is stored; none if it has been answered meanwhile.
    fn question(&self, params: &Params, reply: &Value) -> Result<Option<Question>, HostError> {
        let run = self.call_json("get_run", &of_run(params))?;
        let request = &run["state"]["feedback_request"];
        if request["request_id"] != reply["result"]["request_id"] {
            return Ok(None);
        }
        let comment = question::comment_params(&run, &reply["details"]);
        Ok(match self.call("format_feedback_comment", &comment)? {
            Said::Text(comment) => Some(Question::new(request, &reply["details"], &comment)),
            Said::Json(_) => None,
        })
    }

    fn mark_shown(&self, params: &Params, reply: &mut Value) -> Result<(), HostError> {
        let mut mark = of_run(params);
        let id = reply["result"]["request_id"].as_str().unwrap_or_default();
        for (name, text) in [("operation", "mark-notified"), ("request_id", id), ("cli", "true")] {
            mark.push((name.to_owned(), text.to_owned()));
        }
        let marked = self.call_json("update_feedback_state", &mark)?;
        // Answered or replaced meanwhile: shown it was all the same.
        if is_refusal(&marked) && marked["error"]["code"] != "REQUEST_ID_MISMATCH" {
            let warning = json!({"code": "STATE_UPDATE_FAILED", "number": 7, "message": marked["error"]["message"]});
            match reply.get_mut("warnings").and_then(Value::as_array_mut) {
                Some(warnings) => warnings.push(warning),
                None => reply["warnings"] = json!([warning]),
            }
        }
        reply["notifications"]["cli"] = true.into();
        reply["result"]["notifications"]["cli"] = true.into();
        Ok(())
    }

    /// Takes the answer of the person at this terminal; an empty line leaves the request open.
    fn ask(&self, params: &Params, reply: &Value, question: &Question) -> Result<Exit, HostError> {
        while let Some(line) = read(question.prompt()).filter(|line| !line.is_empty()) {
            let response = match question.understood(&line) {
                Ok(response) => response,
                Err(offered) => {
                    say(&format!("{offered}\n"));
                    continue;
                }
            };
            let comment = read("Comment (empty for none): ").unwrap_or_default();
            let mut answer = of_run(params);
            let id = reply["result"]["request_id"].as_str().unwrap_or_default();
            for (name, text) in [("request_id", id), ("response", &response), ("comment", &comment)]
            {
                answer.push((name.to_owned(), text.to_owned()));
            }
            say(&banner::response_start(&answer));
            let answered = self.call_json("process_response", &answer)?;
            if answered["error"]["code"] == "INVALID_RESPONSE" {
                say(&format!("{}\n", banner::one_line(&answered["error"]["message"])));
                continue;
            }
            return responded(&answered);
        }
        Ok(Exit::Done)
    }

    pub(super) fn respond(&self, params: &Params) -> Result<Exit, HostError> {
        say(&banner::response_start(params));
        responded(&self.call_json("process_response", params)?)
    }
}

fn responded(reply: &Value) -> Result<Exit, HostError> {
    if is_refusal(reply) {
        return refused(reply);
    }
    print(&pretty(reply)?)?;
    say(&banner::response_end(reply));
    Ok(Exit::Done)
}

/// Whether a person sits at all three ends. A step of a script must neither wait for one nor find two replies in its output.
fn is_answered_here() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal()
}

/// A line from the terminal without blanks around it; none at its end.
fn read(prompt: &str) -> Option<String> {
    say(prompt);
    let mut line = String::new();
    let length = io::stdin().read_line(&mut line).ok()?;
    (length > 0).then(|| line.trim().to_owned())
}
