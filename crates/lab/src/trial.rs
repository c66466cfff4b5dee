//! Trial: the tests of the lab, on as many labs side by side as asked for, and a line per test.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Result, anyhow};

use crate::lab::{Lab, Programs, Shape};
use crate::stories::{self, Ended};

/// As most stories need it, with room for those that need more.
const SHAPE: Shape = Shape { machines: 4, zones: 1 };

/// Raises labs, tells the stories, takes the labs down. Says whether all went as told.
pub async fn run(names: &[&'static str], labs: usize, programs: Programs) -> Result<bool> {
    let begin = Instant::now();
    let left: Arc<Mutex<VecDeque<&'static str>>> = Arc::new(Mutex::new(names.iter().copied().collect()));
    let mut raised = Vec::new();
    let mut outcome = Ok(());
    for _lab in 0..labs.max(1) {
        let mut tell = |what: &str| println!("{:>5.0} s  {what}", begin.elapsed().as_secs_f32());
        let lab = Lab::new(SHAPE, programs.clone(), &mut tell)?;
        raised.push(lab.clone());
        outcome = lab.raise(&mut tell).await;
        if outcome.is_err() {
            break;
        }
    }
    let mut ended = Vec::new();
    if outcome.is_ok() {
        let local = tokio::task::LocalSet::new();
        let mut tellers = Vec::new();
        for lab in &raised {
            let (lab, left) = (lab.clone(), Arc::clone(&left));
            tellers.push(local.spawn_local(async move { teller(&lab, &left).await }));
        }
        ended = local
            .run_until(async move {
                let mut all = Vec::new();
                for teller in tellers {
                    match teller.await {
                        Ok(Ok(mut ended)) => all.append(&mut ended),
                        Ok(Err(why)) => println!("!! {why:#}"),
                        Err(why) => println!("!! a teller ended: {why}"),
                    }
                }
                all
            })
            .await;
    }
    for lab in raised {
        lab.down()?;
    }
    outcome?;
    let failed: Vec<&Ended> = ended.iter().filter(|ended| !ended.wrong.is_empty()).collect();
    for ended in &failed {
        println!("\n{}:\n  {}", ended.name, ended.wrong.join("\n  "));
    }
    let missing = names.len() - ended.len();
    println!("\nlab: {} passed, {} failed", ended.len() - failed.len(), failed.len() + missing);
    if missing > 0 {
        return Err(anyhow!("{missing} stories were not told"));
    }
    Ok(failed.is_empty())
}

async fn teller(lab: &Lab, left: &Mutex<VecDeque<&'static str>>) -> Result<Vec<Ended>> {
    let mut all = Vec::new();
    let mut told = |ended: &Ended| {
        let how = if ended.wrong.is_empty() { "ok" } else { "FAILED" };
        println!("test {} ... {how} ({} s)", ended.name, ended.took.as_secs());
        all.push(ended.clone());
    };
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    stories::tell(lab, next, &mut told).await?;
    Ok(all)
}
