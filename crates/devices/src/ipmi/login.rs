//! IPMI / login: who we are for a BMC, and what we insist on.
//!
//! Promise: what a BMC could not store, or what would leave a session open to anyone, is refused before anything is sent.
//! Never: cipher suite 0 (no password is asked) or any other without authentication, integrity and confidentiality; prints
//! a secret.

use std::fmt;

/// What a BMC can store.
const LONGEST_USERNAME: usize = 16;
const LONGEST_KEY: usize = 20;

/// How we log in. Its Debug shows no secret.
#[derive(Clone)]
pub struct Login {
    pub(super) username: String,
    password: String,
    kg: Option<Vec<u8>>,
    pub(super) privilege: Privilege,
    pub(super) ciphers: Ciphers,
}

impl Login {
    /// As this user: with the privilege of an operator, and the strongest cipher suite that the BMC has.
    pub fn new(username: impl Into<String>, password: impl Into<String>) -> Result<Self, BadLogin> {
        let (username, password) = (username.into(), password.into());
        if username.len() > LONGEST_USERNAME {
            return Err(BadLogin(format!(
                "`username` has {} bytes, and IPMI knows names of at most {LONGEST_USERNAME}: use a shorter one",
                username.len()
            )));
        }
        if password.len() > LONGEST_KEY {
            return Err(BadLogin(format!(
                "`password` has {} bytes, and IPMI knows passwords of at most {LONGEST_KEY}: give the user of the BMC a \
                 shorter one. It would not do to cut it: which part the BMC has kept, nobody knows",
                password.len()
            )));
        }
        if password.is_empty() {
            return Err(BadLogin(
                "`password` is empty: anyone could switch this machine; give the user of the BMC a password".to_owned(),
            ));
        }
        if password.contains('\0') {
            return Err(BadLogin("`password` holds a NUL, where it ends for a BMC: choose another one".to_owned()));
        }
        let (privilege, ciphers) = (Privilege::default(), Ciphers::default());
        Ok(Self { username, password, kg: None, privilege, ciphers })
    }

    /// With the key of the BMC (K_g), in hexadecimal digits, as fence agents take it. Only zeros are no key, as for a BMC.
    pub fn with_kg(mut self, hexadecimal: &str) -> Result<Self, BadLogin> {
        let digits = hexadecimal.trim().trim_start_matches("0x");
        let bad = || {
            BadLogin(format!(
                "`hexadecimal_kg` is not a key: it has to be up to {LONGEST_KEY} bytes as pairs of hexadecimal digits"
            ))
        };
        let pair = |pair: &[u8]| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok());
        let pairs = digits.as_bytes().chunks(2).map(|digits| if digits.len() == 2 { pair(digits) } else { None });
        // A sign is a number for the standard library.
        let key = if digits.contains('+') { None } else { pairs.collect::<Option<Vec<u8>>>() };
        let key = key.filter(|key| key.len() <= LONGEST_KEY).ok_or_else(bad)?;
        self.kg = key.iter().any(|byte| *byte != 0).then_some(key);
        Ok(self)
    }

    /// With another privilege.
    #[must_use]
    pub fn with_privilege(self, privilege: Privilege) -> Self {
        Self { privilege, ..self }
    }

    /// With these cipher suites only.
    #[must_use]
    pub fn with_ciphers(self, ciphers: Ciphers) -> Self {
        Self { ciphers, ..self }
    }

    /// The key of the user, by which both sides show that they know the password.
    pub(super) fn user_key(&self) -> &[u8] {
        self.password.as_bytes()
    }

    /// The key that a session's keys are made with: a BMC without one of its own takes the user's.
    pub(super) fn session_key(&self) -> &[u8] {
        self.kg.as_deref().unwrap_or_else(|| self.user_key())
    }

    pub(super) fn has_kg(&self) -> bool {
        self.kg.is_some()
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login({}, ***, {}, {:?})", self.username, self.privilege, self.ciphers)
    }
}

/// What we may do at a BMC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Privilege {
    /// Read the state; no more.
    User,
    /// Switch the power: all that fencing needs.
    #[default]
    Operator,
    /// Everything. Only for BMCs that wrongly ask for it.
    Administrator,
}

impl Privilege {
    /// As a template names it.
    pub fn of(word: &str) -> Result<Self, BadLogin> {
        match word.trim().to_lowercase().as_str() {
            "user" => Ok(Self::User),
            "operator" => Ok(Self::Operator),
            "administrator" | "admin" => Ok(Self::Administrator),
            other => Err(BadLogin(format!("`privlvl` is {other:?}; it is user, operator or administrator"))),
        }
    }

    pub(super) fn number(self) -> u8 {
        match self {
            Self::User => 0x02,
            Self::Operator => 0x03,
            Self::Administrator => 0x04,
        }
    }
}

impl fmt::Display for Privilege {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "USER",
            Self::Operator => "OPERATOR",
            Self::Administrator => "ADMINISTRATOR",
        })
    }
}

/// Which algorithms a session is protected with. There are only two with authentication, integrity and confidentiality that
/// are not broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Suite {
    /// 3: HMAC-SHA1 and AES-CBC-128. Every BMC has it.
    Three,
    /// 17: HMAC-SHA256 and AES-CBC-128.
    Seventeen,
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Three => "3",
            Self::Seventeen => "17",
        })
    }
}

/// Which cipher suites are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ciphers {
    /// 17, and 3 at a BMC that does not have it. Whoever can forge datagrams of the BMC can bring about 3; whoever must not
    /// let that happen names one.
    #[default]
    Best,
    /// This one, or none.
    Only(Suite),
}

impl Ciphers {
    /// As a template names it.
    pub fn of(number: &str) -> Result<Self, BadLogin> {
        match number.trim() {
            "3" => Ok(Self::Only(Suite::Three)),
            "17" => Ok(Self::Only(Suite::Seventeen)),
            "0" => Err(BadLogin(
                "`cipher` is 0, where a BMC lets in anyone without a password; use 17 or 3, and switch 0 off at the BMC".to_owned(),
            )),
            other => Err(BadLogin(format!(
                "`cipher` is {other:?}; 17 and 3 are the suites with authentication, integrity and encryption"
            ))),
        }
    }

    pub(super) fn suites(self) -> &'static [Suite] {
        match self {
            Self::Best => &[Suite::Seventeen, Suite::Three],
            Self::Only(Suite::Seventeen) => &[Suite::Seventeen],
            Self::Only(Suite::Three) => &[Suite::Three],
        }
    }
}

/// Why nobody can log in like this. It holds no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLogin(pub String);

impl fmt::Display for BadLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadLogin {}
