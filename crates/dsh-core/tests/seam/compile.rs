//! What must not compile.

#[test]
fn undeclared_services_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
