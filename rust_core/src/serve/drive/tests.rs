//! Two threads at the tasks of a connection.

use std::future::poll_fn;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle, ThreadId};
use std::time::Duration;

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

/// For tasks that send nothing.
struct Nowhere;

impl Line for Nowhere {
    fn send(&self, _context: &mut Context<'_>) {}
}

/// Notes what a bell's tasks had heard each time something was sent.
struct Noted(Arc<AtomicUsize>, Arc<Mutex<Vec<usize>>>);

impl Line for Noted {
    fn send(&self, _context: &mut Context<'_>) {
        self.1.lock().push(self.0.load(Ordering::SeqCst));
    }
}

/// A task that is woken by hand, counts what it was woken for, and ends when it has seen enough.
struct Bell {
    rung: AtomicUsize,
    waker: Mutex<Option<Waker>>,
}

impl Bell {
    fn ring(&self) {
        self.rung.fetch_add(1, Ordering::SeqCst);
        let waker = self.waker.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Calls `heard` for each ring, until it says that it was the last.
    fn listen<F: FnMut() -> bool>(
        self: &Arc<Self>,
        mut heard: F,
    ) -> impl Future<Output = ()> + use<F> {
        let (bell, mut seen) = (self.clone(), 0);
        poll_fn(move |context| {
            *bell.waker.lock() = Some(context.waker().clone());
            while seen < bell.rung.load(Ordering::SeqCst) {
                seen += 1;
                if heard() {
                    return Poll::Ready(());
                }
            }
            Poll::Pending
        })
    }
}

fn bell() -> Arc<Bell> {
    Arc::new(Bell {
        rung: AtomicUsize::new(0),
        waker: Mutex::default(),
    })
}

/// A network's thread that runs the task of a drive; told of the drive's end by the receiver.
fn network(
    task: impl Future<Output = ()> + Send + 'static,
) -> (Drive, Receiver<()>, JoinHandle<()>) {
    network_with(task, Nowhere)
}

fn network_with(
    task: impl Future<Output = ()> + Send + 'static,
    line: impl Line + 'static,
) -> (Drive, Receiver<()>, JoinHandle<()>) {
    let (told, tells) = channel();
    let (ended, ends) = channel();
    let thread = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let drive = Drive::new(line);
            let run = drive.run(task);
            told.send(drive).expect("it is heard");
            run.await;
        });
        ended.send(()).expect("it is heard");
    });
    (
        tells.recv_timeout(PATIENCE).expect("it comes"),
        ends,
        thread,
    )
}

fn until(condition: impl Fn() -> bool) {
    let end = std::time::Instant::now() + PATIENCE;
    while !condition() {
        assert!(std::time::Instant::now() < end, "it never came");
        thread::yield_now();
    }
}

fn listener(bell: &Arc<Bell>) -> (impl Future<Output = ()> + use<>, Receiver<ThreadId>) {
    let (heard, told) = channel();
    let mut rings = 0;
    let task = bell.listen(move || {
        rings += 1;
        heard.send(thread::current().id()).expect("it is heard");
        rings == 2
    });
    (task, told)
}

#[test]
fn what_is_woken_at_once_runs_on_the_thread_that_wakes_it() {
    let bell = bell();
    let (task, hears) = listener(&bell);
    let (drive, ends, network) = network(task);
    until(|| bell.waker.lock().is_some() && drive.0.state.load(Ordering::SeqCst) == IDLE);

    drive.at_once(|| bell.ring());
    assert_eq!(
        hears.try_recv().expect("it was heard"),
        thread::current().id()
    );

    bell.ring();
    assert_eq!(
        hears.recv_timeout(PATIENCE).expect("it comes"),
        network.thread().id()
    );
    ends.recv_timeout(PATIENCE).expect("it comes");
    network.join().expect("it ended well");
}

#[test]
fn the_end_of_the_task_at_once_ends_it_for_the_network_as_well() {
    let bell = bell();
    let (drive, ends, network) = network(bell.listen(|| true));
    until(|| bell.waker.lock().is_some() && drive.0.state.load(Ordering::SeqCst) == IDLE);

    drive.at_once(|| bell.ring());

    ends.recv_timeout(PATIENCE).expect("it comes");
    network.join().expect("it ended well");
    // Nothing is left to wake, and nobody waits for it.
    drive.at_once(|| bell.ring());
}

#[test]
fn a_thread_that_is_at_it_is_not_waited_for() {
    let bell = bell();
    let (enters, entered) = channel();
    let (release, released): (Sender<()>, Receiver<()>) = channel();
    let mut rings = 0;
    let (drive, ends, network) = network(bell.listen(move || {
        rings += 1;
        enters.send(thread::current().id()).expect("it is heard");
        if rings == 1 {
            released.recv_timeout(PATIENCE).expect("it comes");
        }
        rings == 2
    }));
    until(|| bell.waker.lock().is_some());
    bell.ring();
    let busy = entered.recv_timeout(PATIENCE).expect("it comes");
    assert_ne!(busy, thread::current().id());

    drive.at_once(|| bell.ring());
    assert!(entered.try_recv().is_err());

    release.send(()).expect("it is heard");
    assert_eq!(entered.recv_timeout(PATIENCE).expect("it comes"), busy);
    ends.recv_timeout(PATIENCE).expect("it comes");
    network.join().expect("it ended well");
}

/// One ring a round, beside a look of another thread that may have just ended: nobody else would make up for one missed.
#[test]
fn no_ring_is_missed_whoever_is_at_it() {
    const ROUNDS: usize = 20_000;
    let bell = bell();
    let heard = Arc::new(AtomicUsize::new(0));
    let counts = heard.clone();
    let (drive, ends, network) =
        network(bell.listen(move || counts.fetch_add(1, Ordering::SeqCst) + 1 == ROUNDS));
    let meet = Arc::new(Barrier::new(2));
    let looker = thread::spawn({
        let (drive, meet) = (drive.clone(), meet.clone());
        move || {
            for _ in 0..ROUNDS {
                meet.wait();
                drive.at_once(|| ());
            }
        }
    });
    for round in 1..=ROUNDS {
        meet.wait();
        if round % 2 == 0 {
            bell.ring();
        } else {
            drive.at_once(|| bell.ring());
        }
        until(|| heard.load(Ordering::SeqCst) == round);
    }
    looker.join().expect("it ended well");
    ends.recv_timeout(PATIENCE).expect("it comes");
    network.join().expect("it ended well");
}

#[test]
fn what_begins_meanwhile_is_looked_at_and_waited_for() {
    let (bell, other) = (bell(), bell());
    let (begun, begins) = channel::<Drive>();
    let mut inner = Some(other.listen(|| true));
    let (drive, ends, network) = network(bell.listen(move || {
        let drive = begins.recv().expect("it is told");
        drive
            .0
            .begin(Box::pin(inner.take().expect("it rings once")));
        true
    }));
    begun.send(drive.clone()).expect("it is heard");
    until(|| bell.waker.lock().is_some());
    drive.at_once(|| bell.ring());

    until(|| other.waker.lock().is_some());
    assert!(ends.try_recv().is_err());
    drive.at_once(|| other.ring());

    ends.recv_timeout(PATIENCE).expect("it comes");
    network.join().expect("it ended well");
}

#[test]
fn a_panic_ends_it_on_whatever_thread() {
    let bell = bell();
    let held = Arc::new(());
    let holds = held.clone();
    let (drive, ends, network) = network(bell.listen(move || {
        assert_eq!(Arc::strong_count(&holds), 2);
        panic!("as a fault of the protocol's library would");
    }));
    until(|| bell.waker.lock().is_some() && drive.0.state.load(Ordering::SeqCst) == IDLE);

    drive.at_once(|| bell.ring());

    ends.recv_timeout(PATIENCE).expect("it comes");
    network.join().expect("it ended well");
    assert_eq!(Arc::strong_count(&held), 1, "the task was dropped");
}

#[test]
fn a_run_that_is_dropped_drops_its_tasks() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime");
    let held = Arc::new(());
    runtime.block_on(async {
        let drive = Drive::new(Nowhere);
        let (bell, holds, inner) = (bell(), held.clone(), drive.clone());
        let mut run = std::pin::pin!(Some(drive.run(async move {
            let _holds = (holds, inner);
            bell.listen(|| true).await;
        })));
        let waiting =
            poll_fn(|context| Poll::Ready(run.as_mut().as_pin_mut().map(|run| run.poll(context))))
                .await;
        assert_eq!(waiting, Some(Poll::Pending));
        run.set(None);
    });
    assert_eq!(Arc::strong_count(&held), 1);
}

/// What never waits for anything, until it is told.
async fn restless(ends: Arc<AtomicBool>) {
    while !ends.load(Ordering::SeqCst) {
        tokio::task::consume_budget().await;
    }
}

/// A task in whose place another one comes, until it is told.
fn replaced(drive: Drive, ends: Arc<AtomicBool>) -> Task {
    Box::pin(async move {
        if !ends.load(Ordering::SeqCst) {
            let next = replaced(drive.clone(), ends);
            drive.0.begin(next);
        }
    })
}

#[test]
fn what_never_rests_is_left_to_the_network() {
    for replaces in [false, true] {
        let (bell, stop) = (bell(), Arc::new(AtomicBool::new(false)));
        let (tells, told) = channel::<Drive>();
        let (rung, stops) = (bell.listen(|| true), stop.clone());
        let (drive, ends, network) = network(async move {
            rung.await;
            let drive = told.recv().expect("it is told");
            if replaces {
                drive.0.begin(replaced(drive.clone(), stops));
            } else {
                restless(stops).await;
            }
        });
        tells.send(drive.clone()).expect("it is heard");
        until(|| bell.waker.lock().is_some() && drive.0.state.load(Ordering::SeqCst) == IDLE);

        // It comes back.
        drive.at_once(|| bell.ring());

        assert!(ends.try_recv().is_err());
        stop.store(true, Ordering::SeqCst);
        ends.recv_timeout(PATIENCE).expect("it comes");
        network.join().expect("it ended well");
    }
}

#[test]
fn a_call_that_panics_ends_alone() {
    use hyper::rt::Executor;

    let (bell, held) = (bell(), Arc::new(()));
    let (drive, ends, network) = network(bell.listen(|| true));
    let holds = held.clone();
    drive.execute(async move {
        assert_eq!(
            Arc::strong_count(&holds),
            0,
            "as a fault of a library would"
        );
    });
    until(|| bell.waker.lock().is_some());
    drive.at_once(|| ());
    until(|| Arc::strong_count(&held) == 1);
    assert!(ends.try_recv().is_err());

    bell.ring();

    ends.recv_timeout(PATIENCE).expect("it comes");
    network.join().expect("it ended well");
}

#[test]
fn a_panic_while_waking_leaves_the_tasks_to_others() {
    let bell = bell();
    let (drive, ends, network) = network(bell.listen(|| true));
    until(|| bell.waker.lock().is_some() && drive.0.state.load(Ordering::SeqCst) == IDLE);

    let woken = catch_unwind(AssertUnwindSafe(|| drive.at_once(|| panic!("a fault"))));

    assert!(woken.is_err());
    bell.ring();
    ends.recv_timeout(PATIENCE).expect("it comes");
    network.join().expect("it ended well");
}

#[test]
fn what_one_task_has_another_send_is_sent_along() {
    let (first, second) = (bell(), bell());
    let heard = Arc::new(AtomicUsize::new(0));
    let sent = Arc::new(Mutex::default());
    let count = |bell: &Arc<Bell>, then: Option<Arc<Bell>>| {
        let (heard, mut rings) = (heard.clone(), 0);
        bell.listen(move || {
            heard.fetch_add(1, Ordering::SeqCst);
            if let Some(then) = &then {
                then.ring();
            }
            rings += 1;
            rings == 2
        })
    };
    // The second is looked at before the first, so that only another look finds it woken.
    let tasks = [count(&second, None), count(&first, Some(second.clone()))];
    let both = async move {
        let [second, first] = tasks;
        tokio::join!(second, first);
    };
    let (drive, ends, network) = network_with(both, Noted(heard.clone(), sent.clone()));
    until(|| first.waker.lock().is_some() && second.waker.lock().is_some());
    until(|| drive.0.state.load(Ordering::SeqCst) == IDLE && !sent.lock().is_empty());
    sent.lock().clear();

    drive.at_once(|| first.ring());
    assert_eq!(*sent.lock(), [2]);

    first.ring();
    ends.recv_timeout(PATIENCE).expect("it comes");
    network.join().expect("it ended well");
}
