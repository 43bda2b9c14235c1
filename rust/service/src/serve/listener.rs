//! Where a service reports its changes.
use super::figures::Figures;
use crate::backend::State;

/// Who is told of changes.
pub struct Listener {
    pub on_state: Box<dyn Fn(&State)>,
    /// Called when there are many.
    pub on_figures_due: Box<dyn Fn(Figures)>,
}
