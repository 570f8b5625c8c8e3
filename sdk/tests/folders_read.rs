//! `#[udf(folders(read))]`: folders are looked at, never locked or written.

use std::time::Duration;

use sdk::host::Descriptor;
use sdk::prelude::*;
use sdk::testing::TestHost;

/// Looks.
#[udf(folders(read))]
fn look(ctx: &Context, root: &str) -> Result<Reply, UdfError> {
    let folder = ctx.folder(root, "run", ".lock")?;
    Ok(Reply::text(&folder.read("a")?.unwrap_or_default()))
}

#[test]
fn reading_is_all_that_is_allowed() {
    let host = TestHost::new();
    host.seed_file("base/run/a", "text");
    let root = host.app_dir().join("base");
    let root = root.to_str().unwrap();
    assert_eq!(host.call(UDF, &[("root", root)]), Ok(Reply::text("text")));

    let ctx = host.context(UDF);
    let folder = ctx.folder(root, "run", ".lock").unwrap();
    for refused in [
        folder.lock(Duration::ZERO).unwrap_err(),
        ctx.folder(root, "other", ".lock").unwrap().create(&[], &[("a", "b")]).unwrap_err(),
    ] {
        assert_eq!(refused.kind(), ErrorKind::Refused);
        assert_eq!(
            refused.message(),
            "`look` writes folders without declaring it: write `#[udf(folders)]`"
        );
    }
    let descriptor = Descriptor::of(UDF.plugin()).unwrap();
    assert!(descriptor.folders && descriptor.folders_read_only && !descriptor.changes());
}
