// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

// The attributes of Clang's thread safety analysis, under the names that Clang's manual gives them.
// The compiler refuses an access to a guarded member, or a call that requires a lock, without the
// lock.

// On a class: it is a lock, or its objects hold one for as long as they live.
#define CAPABILITY(kind) __attribute__((capability(kind)))
#define SCOPED_CAPABILITY __attribute__((scoped_lockable))

// On a member: the lock is needed to use it, or what it points to.
#define GUARDED_BY(...) __attribute__((guarded_by(__VA_ARGS__)))
#define PT_GUARDED_BY(...) __attribute__((pt_guarded_by(__VA_ARGS__)))

// On a function: the caller holds the lock.
#define REQUIRES(...) __attribute__((requires_capability(__VA_ARGS__)))
#define REQUIRES_SHARED(...) __attribute__((requires_shared_capability(__VA_ARGS__)))

// On a function of a lock: it takes or releases the lock.
#define ACQUIRE(...) __attribute__((acquire_capability(__VA_ARGS__)))
#define ACQUIRE_SHARED(...) __attribute__((acquire_shared_capability(__VA_ARGS__)))
#define TRY_ACQUIRE(...) __attribute__((try_acquire_capability(__VA_ARGS__)))
#define RELEASE(...) __attribute__((release_capability(__VA_ARGS__)))
#define RELEASE_SHARED(...) __attribute__((release_shared_capability(__VA_ARGS__)))
#define RELEASE_GENERIC(...) __attribute__((release_generic_capability(__VA_ARGS__)))

// On a function that returns a reference to a lock: which one it is.
#define RETURN_CAPABILITY(...) __attribute__((lock_returned(__VA_ARGS__)))

// On a function that the analysis cannot follow. State the reason beside it.
#define NO_THREAD_SAFETY_ANALYSIS __attribute__((no_thread_safety_analysis))
