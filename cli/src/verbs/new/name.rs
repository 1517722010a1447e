//! What a project may be called: its name is that of a package, of a job, and, with `_` for `-`, of a module of its language.

use super::language::Language;
use crate::exit::Failure;

/// Refuses a name that is none of a package, or that would stand for something else in this language.
pub(super) fn check(name: &str, language: Language) -> Result<(), Failure> {
    let Some(problem) = problem(name, language) else { return Ok(()) };
    Err(Failure::invalid(miette::miette!(
        help = "such as `millstream new hot-sensors`",
        "`{name}` cannot be the name of a project: {problem}"
    )))
}

fn problem(name: &str, language: Language) -> Option<&'static str> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Some("it does not begin with a lower-case letter");
    }
    if !name.chars().all(plain) {
        return Some("it has other characters than lower-case letters, digits, `-` and `_`");
    }
    let module = name.replace('-', "_");
    let found =
        reserved(language).iter().find(|(words, _)| words.split_whitespace().any(|word| word == module));
    found.map(|(_, problem)| *problem)
}

/// The words that mean something else in a language, and what. A project in C is a text there, and no name.
fn reserved(language: Language) -> &'static [(&'static str, &'static str)] {
    match language {
        Language::Rust => {
            &[(RUST_WORDS, "Rust or its libraries use this word"), ("millstream millstream_sdk", SDK)]
        }
        Language::Python => &[
            (PYTHON_WORDS, "it is a word of Python's, so that no module can be imported by it"),
            (
                PYTHON_MODULES,
                "a module of Python's standard library has this name, and one would hide the other",
            ),
            ("millstream", SDK),
            (PYTHON_COMPONENT, "a module that the build puts into the component has this name"),
        ],
        Language::Javascript | Language::Typescript => &[
            ("millstream", SDK),
            ("esbuild typescript node_modules", "npm installs nothing in a package of this name"),
        ],
        Language::C => &[("millstream", SDK)],
    }
}

const SDK: &str = "the SDK has this name";

/// Words that Cargo refuses as the name of a library.
const RUST_WORDS: &str = "\
    abstract alloc as async await become box break const continue core crate do dyn else enum extern false \
    final fn for gen if impl in let loop macro match mod move mut override priv pub ref return self static \
    std struct super test trait true try type typeof unsafe unsized use virtual where while yield";

/// Keywords in lower case.
const PYTHON_WORDS: &str = "\
    and as assert async await break class continue def del elif else except finally for from global if \
    import in is lambda nonlocal not or pass raise return try while with yield";

/// Those of Python 3.11 to 3.14 whose names are in lower case.
const PYTHON_MODULES: &str = "\
    abc aifc annotationlib antigravity argparse array ast asynchat asyncio asyncore atexit audioop base64 \
    bdb binascii bisect builtins bz2 calendar cgi cgitb chunk cmath cmd code codecs codeop collections \
    colorsys compileall compression concurrent configparser contextlib contextvars copy copyreg crypt csv \
    ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest email encodings ensurepip \
    enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt \
    getpass gettext glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib imghdr imp importlib \
    inspect io ipaddress itertools json keyword lib2to3 linecache locale logging lzma mailbox mailcap \
    marshal math mimetypes mmap modulefinder msilib msvcrt multiprocessing netrc nis nntplib nt ntpath \
    nturl2path numbers opcode operator optparse os ossaudiodev pathlib pdb pickle pickletools pipes pkgutil \
    platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc \
    pydoc_data pyexpat queue quopri random re readline reprlib resource rlcompleter runpy sched secrets \
    select selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 \
    sre_compile sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau \
    symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap this threading time \
    timeit tkinter token tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types typing \
    unicodedata unittest urllib uu uuid venv warnings wave weakref webbrowser winreg winsound wsgiref xdrlib \
    xml xmlrpc zipapp zipfile zipimport zlib zoneinfo";

/// Modules of componentize-py and of the program that a component starts from.
const PYTHON_COMPONENT: &str = "millstream_app wit_world poll_loop componentize_py_types componentize_py_runtime \
    componentize_py_async_support";

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use crate::exit::Exit;

    #[test]
    fn names_do_for_packages_jobs_and_modules() {
        for language in Language::value_variants() {
            for good in ["hot-sensors", "a", "q5_count2"] {
                assert!(check(good, *language).is_ok(), "{good}");
            }
            for bad in ["", "Hot", "2nd", "-a", "a b", "a.b", "millstream", "ä"] {
                let failure = check(bad, *language).expect_err(bad);
                assert_eq!(failure.exit, Exit::Invalid);
            }
        }
    }

    #[test]
    fn a_word_is_refused_where_it_means_something_else() {
        use Language::{C, Javascript, Python, Rust, Typescript};
        for (name, refused) in [
            ("match", &[Rust][..]),
            ("class", &[Python]),
            ("async", &[Rust, Python]),
            ("json", &[Python]),
            ("py-compile", &[Python]),
            ("wit-world", &[Python]),
            ("esbuild", &[Javascript, Typescript]),
            ("static", &[Rust]),
        ] {
            for language in [Rust, Python, Javascript, Typescript, C] {
                assert_eq!(
                    check(name, language).is_err(),
                    refused.contains(&language),
                    "{name}, {language:?}"
                );
            }
        }
        assert!(problem("json", Python).is_some_and(|words| words.contains("standard library")));
        assert!(problem("class", Python).is_some_and(|words| words.contains("word of Python's")));
    }
}
