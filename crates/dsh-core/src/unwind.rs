//! After a panic: the locks it left behind, and what it said.
//!
//! Guarantee: a panic in one task fails that task and no other. Under these locks stand updates that
//! leave the data whole at every step, so a poisoned lock is used as if nothing had happened.

use std::{
    any::Any,
    sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

/// Locks a mutex, poisoned or not. Blocks; never hold the guard across an await.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for reading, poisoned or not. Blocks like [`lock`].
pub fn read<T: ?Sized>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks for writing, poisoned or not. Blocks like [`lock`].
pub fn write<T: ?Sized>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// The message of a caught panic, `no message` where it has none. Pass `&*payload`, not `&payload`:
/// a box of any value is a value itself.
pub fn panic_text(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn a_lock_outlives_a_panic() {
        let (mutex, shared) = (Mutex::new(1), RwLock::new(1));
        let both = || {
            let (_mutex, _shared) = (lock(&mutex), write(&shared));
            panic!("bug {}", 7);
        };
        let payload = catch_unwind(AssertUnwindSafe(both)).err().unwrap();
        assert_eq!(panic_text(&*payload), "bug 7");
        *lock(&mutex) += 1;
        *write(&shared) += 1;
        assert_eq!((*lock(&mutex), *read(&shared)), (2, 2));
    }

    #[test]
    fn what_a_panic_said() {
        let payload = |it: Box<dyn Any + Send>| panic_text(&*it).to_owned();
        assert_eq!(payload(Box::new("plain")), "plain");
        assert_eq!(payload(Box::new("owned".to_owned())), "owned");
        assert_eq!(payload(Box::new(7)), "no message");
    }
}
