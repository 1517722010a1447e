//! Times the parts whose instructions and allocations `cargo xtask costs` counts.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use millstream_costs::PARTS;

fn parts(criterion: &mut Criterion) {
    for part in &PARTS {
        let mut group = criterion.benchmark_group(part.name);
        group.throughput(Throughput::Elements(part.units));
        group.sample_size(20);
        let mut work = part.prepare();
        group.bench_function(part.unit, |bencher| {
            bencher.iter_custom(|steps| {
                let started = std::time::Instant::now();
                work.run(steps);
                started.elapsed()
            });
        });
        group.finish();
    }
}

criterion_group!(benches, parts);
criterion_main!(benches);
