//! Paths of files that metadata names, which may lie in the folders of other checkpoints.

/// The path of a file that is given relative to a folder; `..` is the folder above.
pub(crate) fn join(folder: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            ".." if parts.pop().is_some() => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::join;

    #[test]
    fn dots_lead_up_as_far_as_there_is_a_way() {
        assert_eq!(join("job/run-1/chk-7", "../chk-5/a"), "job/run-1/chk-5/a");
        assert_eq!(join("job/run-1/chk-7", "a"), "job/run-1/chk-7/a");
        assert_eq!(join("", "a"), "a");
        assert_eq!(join("", "../a"), "../a");
    }
}
