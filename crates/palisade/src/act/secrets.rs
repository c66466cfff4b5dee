//! Act / secrets: the values that an order names, read from the files that they are mounted at.
//!
//! Promise (I7): a value goes from its file to the agent. What is wrong with a file is said without a word of what is in it.
//! Never: a file outside of the directory of secrets.

use std::path::{Component, Path, PathBuf};

use palisade_devices::act::Order;
use palisade_devices::agent::{Parameters, Secret, Surroundings};

/// The parameter that holds no value for the agent, but the certificates that it is to trust, as native drivers have it.
const AUTHORITIES: &str = "ca";

/// A secret of Kubernetes has at most 1 MiB; no device takes a password of more than this.
const MOST: u64 = 64 * 1024;

/// What the agent is told, and what is around it.
pub(super) fn told(order: &Order, directory: &Path) -> Result<(Parameters, Surroundings), String> {
    let mut parameters = Parameters { plain: order.parameters.clone(), ..Parameters::default() };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut around = Surroundings { path, authorities: None };
    for (name, file) in &order.secrets {
        let file = place(directory, name, file)?;
        if name == AUTHORITIES {
            around.authorities = Some(file);
        } else {
            parameters.secret.insert(name.clone(), read(name, &file)?);
        }
    }
    Ok((parameters, around))
}

/// The file of a secret, below the directory.
fn place(directory: &Path, name: &str, file: &str) -> Result<PathBuf, String> {
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_));
    if file.is_empty() || !Path::new(file).components().all(inside) {
        let below = directory.display();
        return Err(format!("the secret `{name}` is to be read from {file:?}, which is no file below {below}"));
    }
    Ok(directory.join(file))
}

fn read(name: &str, file: &Path) -> Result<Secret, String> {
    let missing = |why: String| format!("the secret `{name}` cannot be read from {}: {why}", file.display());
    let facts = std::fs::metadata(file).map_err(|why| missing(why.to_string()))?;
    if !facts.is_file() || facts.len() > MOST {
        return Err(missing(format!("it is no file of at most {MOST} bytes")));
    }
    let bytes = std::fs::read(file).map_err(|why| missing(why.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| missing("it is no text".to_owned()))?;
    // Whoever wrote it with an editor did not mean the end of the line.
    Ok(Secret::new(text.strip_suffix('\n').unwrap_or(&text)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use palisade_devices::act::Task;

    use super::*;

    fn order(name: &str, file: &str) -> Order {
        let mut order = Order::new("fence_dummy", Task::On, Duration::ZERO);
        order.secrets.insert(name.to_owned(), file.to_owned());
        order
    }

    #[test]
    fn no_file_outside_of_the_directory_is_read() {
        for file in ["/etc/passwd", "../order/order", "a/../../b", "", "./x"] {
            let why = told(&order("password", file), Path::new("/etc/palisade/secrets")).unwrap_err();
            assert!(why.contains("`password`") && why.contains("no file below"), "{file}: {why}");
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let why = told(&order("password", "0/none"), Path::new("/nowhere")).unwrap_err();
        assert!(why.contains("`password`") && why.contains("/nowhere/0/none"), "{why}");
    }

    #[test]
    fn one_end_of_line_is_taken_off_a_secret() {
        let directory = std::env::temp_dir().join(format!("palisade-act-secrets-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        for (written, value) in [("s3cret\n", "s3cret"), ("s3cret", "s3cret"), ("s3cret\n\n", "s3cret\n")] {
            std::fs::write(directory.join("password"), written).unwrap();
            let (parameters, _) = told(&order("password", "password"), &directory).unwrap();
            assert_eq!(parameters.secret["password"], Secret::new(value));
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn authorities_are_a_file_and_no_parameter() {
        let (parameters, around) = told(&order("ca", "0/ca.crt"), Path::new("/secrets")).unwrap();
        assert!(parameters.secret.is_empty());
        assert_eq!(around.authorities.as_deref(), Some(Path::new("/secrets/0/ca.crt")));
    }
}
