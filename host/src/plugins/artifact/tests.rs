#![expect(clippy::disallowed_methods, reason = "tests lay out files of their own")]

use std::os::unix::fs::symlink;

use super::*;

/// A shared library that is certainly there: the test program's own C library.
fn ordinary_library() -> Vec<u8> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let path = maps
        .split_whitespace()
        .find(|word| word.contains("/libc.so"))
        .expect("the test links libc");
    fs::read(path).unwrap()
}

fn cache() -> (tempfile::TempDir, Cache) {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(&folder.path().join("cache")).unwrap();
    (folder, cache)
}

#[test]
fn whole_libraries_pass_and_everything_else_is_refused_in_words() {
    let whole = ordinary_library();
    check_elf(&whole).unwrap();
    let patched = |at: usize, byte: u8| {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        bytes
    };
    let other_machine = if MACHINE.1 == "x86_64" { elf::EM_AARCH64 } else { elf::EM_X86_64 };
    for (name, bytes, want) in [
        ("empty", Vec::new(), "an empty file"),
        ("text", b"fn main() {}\n".to_vec(), "text"),
        ("noise", vec![0xff; 4096], "something else"),
        ("head only", whole[..40].to_vec(), "cut short"),
        ("400 bytes", whole[..400].to_vec(), "cut short"),
        ("half", whole[..whole.len() / 2].to_vec(), "cut short"),
        ("all but a byte", whole[..whole.len() - 1].to_vec(), "cut short"),
        ("32-bit", patched(4, 1), "32-bit"),
        ("other machine", patched(18, u8::try_from(other_machine.0).unwrap()), "another machine"),
        ("other byte order", patched(5, 3 - whole[5]), "byte order"),
        ("object file", patched(16, 1), "another type"),
        ("segments far away", patched(38, 0xff), "cut short"),
    ] {
        let refusal = check_elf(&bytes).expect_err(name);
        let said = format!("{} {}", refusal.reason, refusal.found.clone().unwrap_or_default());
        assert!(said.contains(want), "{name}: {refusal:?}");
        assert!(refusal.expected.is_some() && !refusal.remedy.is_empty(), "{name}: {refusal:?}");
    }
}

#[test]
fn a_cut_at_any_length_is_refused() {
    let whole = ordinary_library();
    for end in (0..whole.len()).step_by(4099) {
        assert!(check_elf(&whole[..end]).is_err(), "{end} of {} bytes", whole.len());
    }
}

#[test]
fn what_is_not_a_file_is_refused() {
    let (folder, cache) = cache();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("folder.so")).unwrap();
    symlink(at("nowhere"), at("dangling.so")).unwrap();
    for (name, want) in [
        ("folder.so", "not a regular file"),
        ("dangling.so", "not there"),
        ("missing.so", "not there"),
    ] {
        let refusal = cache.take(&at(name)).unwrap_err();
        assert!(refusal.reason.contains(want), "{name}: {refusal:?}");
        assert_eq!(refusal.files, [at(name)]);
    }
}

#[test]
fn a_copy_is_named_by_its_content_and_survives_the_original() {
    let (folder, cache) = cache();
    let file = folder.path().join("lib.so");
    fs::write(&file, ordinary_library()).unwrap();
    let artifact = cache.take(&file).unwrap();
    assert_eq!(artifact.path.file_stem().unwrap().to_string_lossy(), artifact.hash);
    assert_eq!(cache.take(&file).unwrap(), artifact);
    fs::remove_file(&file).unwrap();
    assert_eq!(cache.get(&artifact.hash, artifact.built_at), Some(artifact.clone()));
    assert_eq!(cache.get(&"0".repeat(64), artifact.built_at), None);
    let facts = fs::metadata(&cache.folder).unwrap();
    assert_eq!(facts.mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(&artifact.path).unwrap().mode() & 0o222, 0, "nobody writes to a copy");
}

#[test]
fn a_copy_that_is_not_what_its_name_says_is_replaced() {
    let (folder, cache) = cache();
    let file = folder.path().join("lib.so");
    let whole = ordinary_library();
    fs::write(&file, &whole).unwrap();
    let artifact = cache.take(&file).unwrap();
    let mut other = whole.clone();
    *other.last_mut().unwrap() ^= 1;
    for (name, bytes) in
        [("cut", &whole[..100]), ("same size, other bytes", &other[..]), ("empty", &[][..])]
    {
        fs::remove_file(&artifact.path).unwrap();
        fs::write(&artifact.path, bytes).unwrap();
        assert_eq!(cache.get(&artifact.hash, artifact.built_at), None, "{name}");
        assert_eq!(cache.take(&file).unwrap(), artifact, "{name}");
        assert_eq!(fs::read(&artifact.path).unwrap(), whole, "{name}");
    }
}

#[test]
fn a_cache_that_others_can_write_to_is_closed_to_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o777)).unwrap();
    Cache::open(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(Cache::open(&file).is_err());
}

#[test]
fn only_what_nobody_used_for_long_is_swept() {
    let (folder, cache) = cache();
    let file = folder.path().join("lib.so");
    fs::write(&file, ordinary_library()).unwrap();
    let artifact = cache.take(&file).unwrap();
    let old = SystemTime::now() - KEPT - Duration::from_secs(60);
    let age = |path: &Path| {
        File::open(path).unwrap().set_times(fs::FileTimes::new().set_modified(old)).unwrap();
    };
    let half = cache.folder.join(".copy-left");
    fs::write(&half, "x").unwrap();
    age(&half);
    age(&artifact.path);
    assert!(cache.get(&artifact.hash, artifact.built_at).is_some(), "used again");
    cache.sweep();
    assert!(artifact.path.exists() && !half.exists());
    age(&artifact.path);
    cache.sweep();
    assert!(!artifact.path.exists());
}

#[test]
fn of_much_the_oldest_go_first_and_what_is_in_use_stays() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path()).unwrap();
    let days = [0, 2, 4, 5, 6];
    for day in days {
        let path = folder.path().join(day.to_string());
        fs::write(&path, [0; 100]).unwrap();
        let time = SystemTime::now() - Duration::from_secs(day * 24 * 3600 + 60);
        File::open(&path).unwrap().set_times(fs::FileTimes::new().set_modified(time)).unwrap();
    }
    for (much, want) in [(1000, &days[..]), (300, &[0, 2, 4]), (50, &[0, 2])] {
        cache.sweep_beyond(much);
        let left: Vec<_> =
            days.into_iter().filter(|day| folder.path().join(day.to_string()).exists()).collect();
        assert_eq!(left, want, "beyond {much}");
    }
    Cache::note_use(&folder.path().join("2"));
    let used = fs::metadata(folder.path().join("2")).unwrap().modified().unwrap();
    assert!(used.elapsed().unwrap_or_default() < Duration::from_secs(3600));
}
