//! The leak check finds what it is for, and is content with nothing.

use std::{fs::File, process::Command};

use testkit::{Snapshot, alone, assert_no_leaks, guarded, leaks::processes_with_env, wait_until};

#[test]
fn nothing_left_is_nothing_found() {
    alone(async {
        let before = Snapshot::take();
        let output = Command::new("true").output().unwrap();
        assert!(output.status.success());
        assert_no_leaks(&before);
    });
}

#[test]
fn children_grandchildren_and_zombies_are_found() {
    alone(async {
        let before = Snapshot::take();
        let mut child = Command::new("bash")
            .args(["-c", "sleep 60 & wait"])
            .env("LEAK_TEST", "tree")
            .spawn()
            .unwrap();
        wait_until("the grandchild runs", || {
            Snapshot::take().beyond(&before).processes.iter().any(|it| it.command == "sleep")
        })
        .await;
        let leaks = Snapshot::take().beyond(&before);
        assert_eq!(leaks.processes.len(), 2);
        assert!(leaks.to_string().contains("(sleep)"), "{leaks}");
        let marked = processes_with_env("LEAK_TEST", "tree");
        assert_eq!(marked, leaks.processes);

        for process in &marked {
            assert!(
                Command::new("kill")
                    .arg("-9")
                    .arg(process.pid.to_string())
                    .status()
                    .unwrap()
                    .success()
            );
        }
        let zombie = || Snapshot::take().beyond(&before).processes.iter().any(|it| it.state == 'Z');
        wait_until("the child is a zombie", zombie).await;
        child.wait().unwrap();
        // The grandchild's own zombie belongs to whoever adopted it.
        assert_no_leaks(&before);
    });
}

#[test]
fn descriptors_are_counted_by_kind() {
    alone(async {
        let before = Snapshot::take();
        let file = File::open("/dev/null").unwrap();
        let (reader, writer) = std::io::pipe().unwrap();
        let leaks = Snapshot::take().beyond(&before);
        assert!(leaks.descriptors.iter().any(|(_, target)| target == "/dev/null"), "{leaks}");
        assert_eq!(leaks.descriptors.iter().filter(|(_, it)| it.starts_with("pipe:")).count(), 2);
        drop((file, reader, writer));
        assert_no_leaks(&before);
    });
}

#[test]
fn terminals_of_ours_are_found() {
    alone(async {
        let before = Snapshot::take();
        let master = File::options().read(true).write(true).open("/dev/ptmx").unwrap();
        let leaks = Snapshot::take().beyond(&before);
        assert_eq!(leaks.terminals.len(), 1);
        assert!(leaks.to_string().contains("/dev/pts/"), "{leaks}");
        drop(master);
        assert_no_leaks(&before);
    });
}

#[tokio::test]
#[should_panic(expected = "hangs: nothing")]
async fn a_guard_ends_a_hang() {
    tokio::time::pause();
    guarded("nothing", std::future::pending::<()>()).await;
}
