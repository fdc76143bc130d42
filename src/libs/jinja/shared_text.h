// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace baton::jinja {

// Names of members are mostly one and the same text (CommonWords), so its bytes need no comparing.
inline bool same_text(std::string_view a, std::string_view b) {
  return a.data() == b.data() ? a.size() == b.size() : a == b;
}

// Role. A payload that values share.
// Confinement. The count is atomic; access to the payload depends on its kind.
// Lifetime. Ends with the last reference. It is made with one, which Ref adopts. Objects kept for
//   ever are not counted, so that threads which share them do not contend.
class Object {
 public:
  explicit Object(std::uint32_t nesting = 0) : nesting_(nesting) {}
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;

  // How deep the containers in it are nested: what frees or prints it goes that deep.
  std::uint32_t nesting() const { return nesting_; }
  void retain() const noexcept {
    if (references_.load(std::memory_order_relaxed) == kForEver) return;
    references_.fetch_add(1, std::memory_order_relaxed);
  }
  void release() const noexcept {
    // No other thread can obtain an object with a single reference.
    const std::uint32_t references = references_.load(std::memory_order_acquire);
    if (references == kForEver) return;
    if (references == 1 || references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  // Requires: no other thread has it yet.
  void keep_for_ever() { references_.store(kForEver, std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kForEver = 0xFFFF'FFFF;
  mutable std::atomic<std::uint32_t> references_ = 1;
  const std::uint32_t nesting_;
};

// A counted reference to an object.
template <class T>
class Ref {
 public:
  Ref() noexcept = default;
  static Ref adopt(T* object) noexcept {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  static Ref share(T* object) noexcept {
    if (object != nullptr) object->retain();
    return adopt(object);
  }
  Ref(const Ref& other) noexcept : object_(other.object_) {
    if (object_ != nullptr) object_->retain();
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class Derived>
  Ref(Ref<Derived> other) noexcept : object_(std::move(other).detach()) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) object_->release();
  }

  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  T* detach() && noexcept { return std::exchange(object_, nullptr); }

 private:
  T* object_ = nullptr;
};

template <class T, class... Args>
Ref<T> make(Args&&... args) {
  return Ref<T>::adopt(new T(std::forward<Args>(args)...));
}

// Role. Memory that texts point into. Confinement. Filled by one thread, before others see it.
class TextMemory final : public Object {
 public:
  explicit TextMemory(std::size_t size) : memory_(std::make_unique_for_overwrite<char[]>(size)) {}
  char* data() const { return memory_.get(); }

 private:
  std::unique_ptr<char[]> memory_;
};

// Role. Immutable UTF-8 text: owned, a part of another Text, or a view of text that outlives it.
// Confinement. Any thread.
// Invariants. Positions and lengths that templates see are code points, not bytes.
class Text final : public Object {
 public:
  explicit Text(std::string text) : own_(std::move(text)), view_(own_) {}
  // A piece of what `owner` keeps; without an owner, what it points to has to outlive it.
  Text(Ref<const Object> owner, std::string_view piece) : owner_(std::move(owner)), view_(piece) {}

  std::string_view view() const { return view_; }
  std::size_t length() const;  // in code points, counted once
  bool ascii() const { return length() == view_.size(); }
  // Offset of the code point at `index`; the end if there are fewer.
  std::size_t offset(std::size_t index) const;
  // Points into this text rather than copying it, where that is worth it.
  Ref<Text> piece(std::size_t begin, std::size_t size) const;

 private:
  std::string own_;
  Ref<const Object> owner_;
  std::string_view view_;
  mutable std::atomic<std::size_t> length_ = kUncounted;
  static constexpr std::size_t kUncounted = static_cast<std::size_t>(-1);
};

}  // namespace baton::jinja
