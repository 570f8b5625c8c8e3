//! Tells the host where it was built, so that it builds plugins in the same place with the same profile.

use std::env;
use std::path::{Path, PathBuf};

fn main() {
    // Not run again when the checkout is moved: the host asks where it lies itself before it believes this.
    println!("cargo:rerun-if-changed=build.rs");
    // `<target>/[<triple>/]<profile>/build/host-<hash>/out`
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let profile_dir = out.ancestors().nth(3).expect("OUT_DIR lies below the profile's folder");
    // Resolved, since a build of the host itself in a shadow workspace sees the shadow's link here.
    let manifest_dir =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    let manifest_dir = manifest_dir.canonicalize().unwrap_or(manifest_dir);
    let checkout = manifest_dir.parent().unwrap_or(Path::new("/"));
    println!("cargo:rustc-env=UDF_HOST_PROFILE_DIR={}", profile_dir.display());
    println!("cargo:rustc-env=UDF_HOST_CHECKOUT={}", checkout.display());
    println!("cargo:rustc-env=UDF_HOST_TRIPLE={}", env::var("TARGET").expect("cargo sets TARGET"));
}
