//! Trial: the tests of the lab, on as many labs side by side as asked for, and a line per test.
//!
//! The stories and the troubles are dealt out to labs with machines. What is asked of every API server and of its controllers is
//! asked of a control plane without machines beside them, since it waits far more than it works.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use palisade_scenarios::catalogue::Story;
use palisade_scenarios::conformance::{self, Report};
use palisade_scenarios::stories::FIRST;
use palisade_scenarios::world::World;

use crate::audit::{self, Audit, Use};
use crate::control_plane::Part;
use crate::interrupt;
use crate::lab::{Lab, Programs, Shape};
use crate::objects;
use crate::ruins;
use crate::surroundings::Trouble;
use crate::world::LabWorld;

/// As most stories need it.
const SHAPE: Shape = Shape { machines: 4, zones: 1 };
/// A control plane, and nothing that it could control.
const BARE: Shape = Shape { machines: 0, zones: 1 };

/// What is to be tried.
#[derive(Clone, Default)]
pub struct Choice {
    /// Stories by name.
    pub stories: Vec<&'static str>,
    /// What Palisade stands on breaks.
    pub troubles: Vec<Trouble>,
    /// Whether the real API server and its controllers do what the embedded ones do.
    pub conformance: bool,
    /// Whether a lab that crashed can be cleared away.
    pub ruins: bool,
    /// Whether every right has to be used by somebody: sensible if everything is told.
    pub rights: bool,
}

/// How a test ended.
#[derive(Clone, Debug)]
struct Ended {
    name: String,
    took: Duration,
    /// What was not as told; empty if all was.
    wrong: Vec<String>,
}

impl Ended {
    fn show(&self) {
        let how = if self.wrong.is_empty() { "ok" } else { "FAILED" };
        println!("test {} ... {how} ({} s)", self.name, self.took.as_secs());
        for wrong in &self.wrong {
            println!("    {wrong}");
        }
    }
}

/// A test that is played on a lab with machines.
#[derive(Clone, Copy)]
enum Test {
    Story(&'static str),
    Trouble(Trouble),
}

type Queue = Arc<Mutex<VecDeque<Test>>>;

/// Raises labs, plays the tests, takes the labs down. Says whether all went as told.
pub async fn run(choice: &Choice, labs: usize, programs: Programs) -> Result<bool> {
    let begin = Instant::now();
    let mut tests: VecDeque<Test> = choice.stories.iter().copied().map(Test::Story).collect();
    tests.extend(choice.troubles.iter().copied().map(Test::Trouble));
    let wanted = tests.len();
    let mut ended = Vec::new();
    if choice.ruins {
        ended.push(ruins(&programs));
    }
    let labs = labs.clamp(usize::from(wanted > 0), wanted);
    let mut raised = Vec::new();
    let played = async {
        raise(labs, choice.conformance, &programs, &mut raised, begin).await?;
        play(&raised, tests).await
    };
    let played = tokio::select! {
        played = played => played,
        () = interrupt::asked() => Err(anyhow!("interrupted")),
    };
    for lab in raised {
        lab.down()?;
    }
    let (told, used) = played?;
    ended.extend(told);
    if choice.rights {
        ended.push(judged_rights(&used)?);
    }
    let failed: Vec<&Ended> = ended.iter().filter(|ended| !ended.wrong.is_empty()).collect();
    if !failed.is_empty() {
        println!("\nfailed:");
        for ended in &failed {
            ended.show();
        }
    }
    println!("\nlab: {} passed, {} failed", ended.len() - failed.len(), failed.len());
    println!("took {} s", begin.elapsed().as_secs());
    Ok(failed.is_empty())
}

async fn raise(
    labs: usize,
    conformance: bool,
    programs: &Programs,
    raised: &mut Vec<Lab>,
    begin: Instant,
) -> Result<()> {
    let bare = conformance.then_some(BARE);
    for shape in std::iter::repeat_n(SHAPE, labs).chain(bare) {
        let mut tell = |what: &str| println!("{:>5.0} s  {what}", begin.elapsed().as_secs_f32());
        let lab = Lab::new(shape, programs.clone(), &mut tell)?;
        raised.push(lab.clone());
        lab.raise(&mut tell).await?;
    }
    Ok(())
}

/// Everything side by side, and what Palisade asked the API servers for meanwhile.
async fn play(labs: &[Lab], tests: VecDeque<Test>) -> Result<(Vec<Ended>, BTreeSet<Use>)> {
    let queue: Queue = Arc::new(Mutex::new(tests));
    let local = tokio::task::LocalSet::new();
    let mut players = Vec::new();
    for lab in labs {
        let (lab, queue) = (lab.clone(), Arc::clone(&queue));
        players.push(local.spawn_local(async move {
            if lab.machines().is_empty() {
                conform(&lab).await.map(|all| (all, BTreeSet::new()))
            } else {
                tell(&lab, &queue).await
            }
        }));
    }
    local
        .run_until(async move {
            let (mut ended, mut used) = (Vec::new(), BTreeSet::new());
            for player in players {
                let (mut all, mut asked) = player.await??;
                ended.append(&mut all);
                used.append(&mut asked);
            }
            Ok((ended, used))
        })
        .await
}

/// Tells stories one after the other on one lab, as long as there are any.
async fn tell(lab: &Lab, queue: &Queue) -> Result<(Vec<Ended>, BTreeSet<Use>)> {
    let mut world = LabWorld::over(lab).await?;
    let mut audit = Audit::of(lab);
    let mut all = Vec::new();
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(test) = next else { break };
        let ended = one(&mut world, &mut audit, test).await?;
        ended.show();
        all.push(ended);
    }
    Ok((all, audit.used().clone()))
}

async fn one(world: &mut LabWorld, audit: &mut Audit, test: Test) -> Result<Ended> {
    let begin = Instant::now();
    let mut wrong = Vec::new();
    let bites = world.two_writers().len();
    let fresh = world.fresh(FIRST).await;
    let (name, told, denies) = match (fresh, test) {
        (Ok(()), Test::Story(name)) => {
            let story = Story::<LabWorld>::named(name).ok_or_else(|| anyhow!("{name} is not in the catalogue"))?;
            (name, story.tell(world).await.map_err(|why| why.to_string()), false)
        }
        (Ok(()), Test::Trouble(trouble)) => {
            let told = trouble.tell(world).await.map_err(|why| why.to_string());
            (trouble.name, told, trouble.denies)
        }
        (Err(why), Test::Story(name) | Test::Trouble(Trouble { name, .. })) => {
            (name, Err(format!("the lab did not become fresh: {why:#}")), false)
        }
    };
    wrong.extend(told.err());
    wrong.extend(world.two_writers().into_iter().skip(bites).map(|bite| format!("two writers: {bite}")));
    let denied = audit.look()?;
    if !denies {
        wrong.extend(denied.iter().map(|denied| format!("the API server denied Palisade: {denied}")));
    }
    if !wrong.is_empty() {
        wrong.push(world.how_it_stands());
    }
    Ok(Ended { name: name.to_owned(), took: begin.elapsed(), wrong })
}

/// Whether the real cluster does what the embedded one does, by the same text.
async fn conform(lab: &Lab) -> Result<Vec<Ended>> {
    let client = objects::patient_client(&lab.kubeconfig()).await?;
    // A server that was restarted does not remember its first versions, as one that has run for a while does not.
    lab.plane().kill(Part::ApiServer)?;
    lab.plane().start(Part::ApiServer)?;
    lab.plane().wait(&client).await?;
    let mut all = Vec::new();
    let begin = Instant::now();
    all.extend(reported("an API server", begin, conformance::run(client.clone(), "").await));
    let begin = Instant::now();
    all.extend(reported("bad objects", begin, conformance::run_bad_objects(client.clone()).await));
    let begin = Instant::now();
    all.extend(reported("controllers", begin, conformance::run_controllers(client, "").await));
    Ok(all)
}

/// One test for each check; a line for those that went wrong, and one for all of them.
fn reported(what: &str, begin: Instant, report: Report) -> Vec<Ended> {
    let (checks, failures) = (report.outcomes.len(), report.failures().count());
    println!("conformance of {what}: {checks} checks, {failures} wrong ({} s)", begin.elapsed().as_secs());
    let ended = report.outcomes.into_iter().map(|outcome| Ended {
        name: format!("conformance {}", outcome.name),
        took: outcome.took,
        wrong: outcome.wrong.into_iter().collect(),
    });
    let ended: Vec<Ended> = ended.collect();
    ended.iter().filter(|ended| !ended.wrong.is_empty()).for_each(Ended::show);
    ended
}

/// Nothing may be left of a lab that crashed.
fn ruins(programs: &Programs) -> Ended {
    let begin = Instant::now();
    let wrong = match ruins::left_after_a_crash(programs) {
        Ok(left) => left.into_iter().map(|what| format!("still there: {what}")).collect(),
        Err(why) => vec![format!("{why:#}")],
    };
    let ended = Ended { name: "lab_that_crashed_is_cleared_away".to_owned(), took: begin.elapsed(), wrong };
    ended.show();
    ended
}

/// Nothing may be granted that nobody used.
fn judged_rights(used: &BTreeSet<Use>) -> Result<Ended> {
    let unused = audit::unused(used)?;
    let wrong = unused.iter().map(|right| format!("granted by deploy/palisade.yaml and never used: {right}")).collect();
    let ended = Ended { name: "every_right_is_used".to_owned(), took: Duration::ZERO, wrong };
    ended.show();
    Ok(ended)
}
