// SPDX-License-Identifier: BSD-3-Clause
// Makes dscomm.rs of dscomm.h by bindgen, and tells cargo what pkg-config knows.
use std::process::Command;

// Words that a command prints
fn words(command: &mut Command) -> Vec<String> {
    let output = command.output().unwrap_or_else(|error| panic!("{:?}: {}", command, error));
    assert!(output.status.success(), "{:?}: {}", command, String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).split_whitespace().map(String::from).collect()
}

fn main() {
    let rust = std::env::var("OUT_DIR").unwrap() + "/dscomm.rs";
    let flags = words(Command::new("pkg-config").args(["--cflags", "dscomm"]));
    words(
        Command::new("bindgen")
            .args(["--no-prepend-enum-name", "--allowlist-function", "dscomm_.*"])
            .args(["--allowlist-var", "DSCOMM_.*", "dscomm.h", "-o", &rust, "--"])
            .args(flags),
    );
    for flag in words(Command::new("pkg-config").args(["--libs", "dscomm"])) {
        if flag.starts_with("-L") {
            println!("cargo:rustc-link-search={}", &flag[2..]);
        } else if flag.starts_with("-l") {
            println!("cargo:rustc-link-lib={}", &flag[2..]);
        }
    }
    println!("cargo:rerun-if-changed=dscomm.h");
}
