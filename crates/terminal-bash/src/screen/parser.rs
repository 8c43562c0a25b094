//! Bytes → operations.
#[derive(Debug, Default)]
pub(super) struct Decoder;
impl Decoder {
    pub(super) fn feed(&mut self, _: &[u8], _: &mut super::ScreenState, _: &mut Vec<super::ScreenEvent>) {}
}
