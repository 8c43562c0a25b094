//! Lists the files of the page, which are built into the binary.

use std::{env, fmt::Write as _, fs, io, path::Path};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=page");
    let mut names = Vec::new();
    for entry in fs::read_dir("page")? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let mut table = String::from("&[\n");
    for name in names.iter().filter(|it| *it != "README.md") {
        let path = format!("concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/page/{name}\")");
        writeln!(table, "    ({name:?}, include_bytes!({path})),").map_err(io::Error::other)?;
    }
    table.push(']');
    let out = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    fs::write(Path::new(&out).join("page.rs"), table)
}
