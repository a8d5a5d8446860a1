//! Cores that build graphs when a test says so, and how their banks are asked.

use astrocyte_core::{Core, CoreOptions, PlannerOptions};

/// A core that makes segments of `graph_rows` and always walks them.
pub fn walking(graph_rows: u32) -> Core {
    let planner = PlannerOptions {
        scan_rows: 1,
        sampling: 0.0,
        ..PlannerOptions::default()
    };
    core(graph_rows, planner)
}

/// A core that makes segments of `graph_rows`, as fast as it can.
pub fn core(graph_rows: u32, planner: PlannerOptions) -> Core {
    let options = CoreOptions {
        graph_rows,
        build_share: 1.0,
        planner,
        ..CoreOptions::default()
    };
    Core::with_options(None, options).expect("the options are in their ranges")
}
