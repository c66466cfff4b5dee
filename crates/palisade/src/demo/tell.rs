//! Demo / tell: the terminal.
//!
//! Colours and the moving line are for a terminal; everybody else gets plain lines that can be searched.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use super::story::{Beat, Room};

/// The frames of the moving line.
const FRAMES: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// Tells the story.
pub(super) struct Teller<W> {
    out: W,
    live: bool,
    colours: bool,
    frame: usize,
    drawn: bool,
    /// The line before.
    said: String,
}

impl Teller<io::Stdout> {
    /// On the standard output.
    pub(super) fn on_stdout() -> Self {
        let out = io::stdout();
        let live = out.is_terminal();
        // https://no-color.org
        let colours = live && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self { out, live, colours, frame: 0, drawn: false, said: String::new() }
    }
}

impl<W: Write> Teller<W> {
    /// A line of the story, with the time since the failure; nothing if it only repeats the line before.
    pub(super) fn beat(&mut self, beat: &Beat, since: Duration) -> io::Result<()> {
        if std::mem::replace(&mut self.said, beat.text.clone()) == beat.text {
            return Ok(());
        }
        let (room, colour) = (beat.room.word(), colour(beat.room));
        let room = if self.colours { format!("\x1b[{colour}m{room:<10}\x1b[0m") } else { format!("{room:<10}") };
        self.line(&format!("{:>8}  {room}  {}", seconds(since), beat.text))
    }

    /// A line that stands apart from the story.
    pub(super) fn line(&mut self, text: &str) -> io::Result<()> {
        self.clear()?;
        writeln!(self.out, "{text}")?;
        self.out.flush()
    }

    /// A line that people should not miss.
    pub(super) fn loud(&mut self, text: &str, good: bool) -> io::Result<()> {
        let colour = if good { "1;32" } else { "1;31" };
        if self.colours { self.line(&format!("\x1b[{colour}m{text}\x1b[0m")) } else { self.line(text) }
    }

    /// What goes on while nothing happens; only a terminal sees it.
    pub(super) fn progress(&mut self, text: &str) -> io::Result<()> {
        if !self.live {
            return Ok(());
        }
        self.frame = (self.frame + 1) % FRAMES.len();
        self.drawn = true;
        write!(self.out, "\r\x1b[2K{} {text}", FRAMES[self.frame])?;
        self.out.flush()
    }

    fn clear(&mut self) -> io::Result<()> {
        if self.drawn {
            self.drawn = false;
            write!(self.out, "\r\x1b[2K")?;
        }
        Ok(())
    }
}

/// As a person says it: `11.3 s`.
pub(super) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn colour(room: Room) -> &'static str {
    match room {
        Room::World => "31",
        Room::Seen => "33",
        Room::Decided => "36",
        Room::Held => "1;33",
        Room::Done => "34",
        Room::Proven => "1;32",
        Room::Released => "35",
        Room::Kubernetes => "2",
        Room::Moved | Room::Returned => "32",
        Room::Writes => "1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(live: bool) -> String {
        let mut teller = Teller { out: Vec::new(), live, colours: live, frame: 0, drawn: false, said: String::new() };
        let beat = Beat::new(Duration::ZERO, Room::Proven, "n3 is off");
        teller.progress("waiting").unwrap();
        teller.beat(&beat, Duration::from_millis(13_870)).unwrap();
        teller.beat(&beat, Duration::from_millis(13_920)).unwrap();
        String::from_utf8(teller.out).unwrap()
    }

    #[test]
    fn without_a_terminal_there_are_only_plain_lines() {
        assert_eq!(told(false), "  13.9 s  proven      n3 is off\n");
    }

    #[test]
    fn on_a_terminal_the_moving_line_makes_room() {
        assert_eq!(told(true), "\r\x1b[2K⠙ waiting\r\x1b[2K  13.9 s  \x1b[1;32mproven    \x1b[0m  n3 is off\n");
    }
}
