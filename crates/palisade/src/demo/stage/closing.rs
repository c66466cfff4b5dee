//! Stage / closing: the table and the last word.

use std::io;
use std::process::ExitCode;

use palisade_scenarios::stories::FIRST;
use palisade_scenarios::world::{Told, World};

use super::{ALONE_WATCH, Mark, Stage, seconds};
use crate::demo::verdict::{Outcome, judge, judge_alone};

impl Stage {
    fn outcome(&self, told: Told) -> Outcome {
        Outcome {
            about: self.about.to_owned(),
            told,
            home: self.cast.home.clone(),
            pod: self.cast.pod.clone(),
            runs_on: self.runs_on(),
            failover: self.split.after(Mark::Running),
            left: self.left(),
            held: self.deeds.held.as_ref().map(|beat| beat.text.clone()),
            fenced: self.deeds.fenced,
            released: self.deeds.released,
            two_writers: self.writers.two(),
            bites: self.world.two_writers(),
        }
    }

    pub(super) fn close(&mut self, told: Told) -> io::Result<bool> {
        let outcome = self.outcome(told);
        self.teller.line("")?;
        self.table(&outcome)?;
        match judge(self.ends, &outcome) {
            Ok(words) => self.last_word(&format!("As promised: {words}."), true),
            Err(words) => self.last_word(&format!("Not as promised: {words}."), false),
        }
    }

    pub(super) fn close_alone(&mut self, told: Told) -> io::Result<bool> {
        let outcome = self.outcome(told);
        self.teller.line("")?;
        self.writing_table()?;
        match judge_alone(&outcome, ALONE_WATCH, self.writers.nobody()) {
            Ok(words) => self.last_word(&format!("Without Palisade: {words}."), true),
            Err(words) => self.last_word(&format!("Not as we say: {words}."), false),
        }
    }

    fn table(&mut self, outcome: &Outcome) -> io::Result<()> {
        let rows = self.split.rows();
        if !rows.is_empty() {
            self.teller.line(&format!("{:<12}{:>10}{:>10}", "", "at", "took"))?;
        }
        for (mark, at, took) in rows {
            let (word, means) = mark.words();
            let took = took.map_or_else(|| "-".to_owned(), seconds);
            self.teller.line(&format!("{word:<12}{:>10}{took:>10}  {means}", seconds(at)))?;
        }
        self.teller.line("")?;
        if let Some(time) = outcome.failover {
            self.teller.line(&format!(
                "{:<22}{:>10}  from the failure to the replacement running",
                "failover",
                seconds(time)
            ))?;
        }
        self.writing_table()?;
        if let (Some(time), true) = (self.split.after(Mark::Closed), outcome.left.is_empty()) {
            self.teller.line(&format!(
                "{:<22}{:>10}  Ready, untainted, fence over",
                format!("{} back, clean", outcome.home),
                seconds(time)
            ))?;
        }
        Ok(())
    }

    fn writing_table(&mut self) -> io::Result<()> {
        let (two, nobody) = (seconds(self.writers.two()), seconds(self.writers.nobody()));
        self.teller.line(&format!("{:<22}{two:>10}  two nodes could write at once, by the truth", "two writers"))?;
        self.teller.line(&format!("{:<22}{nobody:>10}  nobody could write", "no writer"))?;
        self.teller.line(&format!("{:<22}{:>10}  can write now", "writer", self.writers.words()))
    }

    fn last_word(&mut self, words: &str, good: bool) -> io::Result<bool> {
        self.teller.line("")?;
        self.teller.loud(words, good)?;
        Ok(good)
    }

    pub(super) async fn interrupted(&mut self) -> anyhow::Result<ExitCode> {
        self.teller.line("")?;
        self.teller.line("Ended before the story was over.")?;
        self.world.stop(FIRST).await;
        // As a shell says it: 128 and the number of SIGINT.
        Ok(ExitCode::from(130))
    }
}
