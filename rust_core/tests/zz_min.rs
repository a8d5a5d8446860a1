mod common;
use common::{Random, clustered, row};
use rust_core::{Core, RecallRequest};
use std::time::Instant;
#[test]
fn speed() {
    for (n, sess) in [(10_000usize,false),(50_000,false),(10_000,true),(50_000,true)] {
        let mut random = Random(7);
        let vectors = clustered(&mut random, 384, n);
        let rows: Vec<_> = vectors.iter().enumerate().map(|(i, v)| { let mut r = row(i as u64 + 1, random.text(16)); r.vector = Some(v.clone()); r.tokens = 20;
            if i % 50 == 0 { r.tags = vec!["two".into()]; } if sess { r.session = Some(format!("s{}", i / 30)); } r }).collect();
        let core = Core::new(Some(&std::env::temp_dir())).unwrap();
        let mut best = f64::MAX; let mut bank = core.bank(384).unwrap();
        for _ in 0..3 { bank = core.bank(384).unwrap(); let s = Instant::now(); for (p, part) in rows.chunks(256).enumerate() { bank.apply(p as u64 + 1, part, &[], &[]).unwrap(); } best = best.min(s.elapsed().as_secs_f64()); }
        println!("{n} sessions {sess}: apply {:.0}/s {} B/row", n as f64 / best, bank.stats().bytes / n as u64);
        for (name, tags, has_v, has_t) in [("dense", false, true, false), ("keyword", false, false, true), ("hybrid", false, true, true), ("hybrid 2%", true, true, true)] {
            let requests: Vec<_> = (0..50).map(|_| RecallRequest { text: has_t.then(|| random.text(8)), vector: has_v.then(|| vectors[random.below(n as u64) as usize].iter().map(|x| x + random.normal()).collect()), tags: if tags { vec!["two".into()] } else { vec![] }, ..Default::default() }).collect();
            let mut sum = 0.0; let mut all = vec![];
            for q in &requests { let mut m = f64::MAX; for _ in 0..20 { let s = Instant::now(); bank.recall(q).unwrap(); let t = s.elapsed().as_secs_f64() * 1e6; m = m.min(t); all.push(t); } sum += m; }
            all.sort_by(f64::total_cmp);
            println!("   {name}: mean of minima {:.1} us, p50 {:.1} us", sum / 50.0, all[500]);
        }
    }
}
