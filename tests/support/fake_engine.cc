// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#include "support/fake_engine.h"

#include <fmt/format.h>

#include <arpa/inet.h>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <utility>

namespace baton::test {
namespace {

constexpr std::chrono::seconds kEngineTimeout{8};
constexpr int kDripPause = 5;    // milliseconds
constexpr int kAcceptPause = 5;  // milliseconds

int open_listener(std::uint16_t& port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(descriptor, generic, size) != 0 || ::listen(descriptor, 64) != 0 ||
      ::getsockname(descriptor, generic, &size) != 0) {
    throw std::runtime_error("the fake engine cannot listen");
  }
  port = ntohs(address.sin_port);
  return descriptor;
}

std::size_t content_length(std::string_view head) {
  constexpr std::string_view kName = "Content-Length: ";
  const std::size_t at = head.find(kName);
  std::size_t length = 0;
  if (at != std::string_view::npos) {
    const std::string_view digits = head.substr(at + kName.size());
    std::from_chars(digits.data(), digits.data() + digits.size(), length);
  }
  return length;
}

}  // namespace

std::optional<SeenRequest> FakePeer::read_request() {
  std::array<char, 16 * 1024> buffer;
  while (true) {
    const std::size_t end = ahead_.find("\r\n\r\n");
    if (end != std::string::npos) {
      const std::size_t head_size = end + 4;
      const std::size_t body_size = content_length(ahead_);
      if (ahead_.size() >= head_size + body_size) {
        SeenRequest request{ahead_.substr(0, head_size), ahead_.substr(head_size, body_size),
                            connection_};
        ahead_.erase(0, head_size + body_size);
        if (request.head.starts_with("POST /abort_request ")) {
          only_aborts_ = true;
          {
            const std::lock_guard lock(engine_.mutex_);
            engine_.aborts_.push_back(request);
            engine_.changed_.notify_all();
          }
          write(response(200, ""));
          continue;
        }
        only_aborts_ = false;
        const std::lock_guard lock(engine_.mutex_);
        engine_.requests_.push_back(request);
        engine_.changed_.notify_all();
        return request;
      }
    }
    const ssize_t size = ::recv(descriptor_, buffer.data(), buffer.size(), 0);
    if (size <= 0) return std::nullopt;
    ahead_.append(buffer.data(), static_cast<std::size_t>(size));
  }
}

void FakePeer::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (size <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
}

void FakePeer::close() { ::shutdown(descriptor_, SHUT_RDWR); }

void FakePeer::reset() {
  const linger at_once{1, 0};
  ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void FakePeer::end_process() { engine_.end_process(); }

void FakePeer::wait_for_drop() {
  std::array<char, 4096> buffer;
  ssize_t size = 1;
  while (size > 0) size = ::recv(descriptor_, buffer.data(), buffer.size(), 0);
  const bool dropped = size == 0 || errno == ECONNRESET;
  const std::lock_guard lock(engine_.mutex_);
  if (dropped && !engine_.ending_ && !only_aborts_) ++engine_.drops_;
  engine_.changed_.notify_all();
}

void FakePeer::drip(std::string_view bytes) {
  const auto end = std::chrono::steady_clock::now() + kEngineTimeout;
  pollfd other{descriptor_, POLLIN | POLLRDHUP, 0};
  while (::poll(&other, 1, kDripPause) == 0) {
    if (std::chrono::steady_clock::now() > end) return;  // a silence would end in a timeout, too
    write(bytes);
  }
  wait_for_drop();
}

void FakePeer::wait_for_proceed() {
  std::unique_lock lock(engine_.mutex_);
  ++engine_.pauses_;
  engine_.changed_.wait_for(lock, kEngineTimeout,
                            [this] { return engine_.ending_ || engine_.allowed_to_proceed_ > 0; });
  if (engine_.allowed_to_proceed_ > 0) --engine_.allowed_to_proceed_;
}

FakeEngine::FakeEngine(Script script)
    : script_(std::move(script)), listener_(open_listener(port_)) {
  acceptor_ = std::thread([this] { accept_loop(); });
}

FakeEngine::~FakeEngine() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    for (const int descriptor : descriptors_) ::shutdown(descriptor, SHUT_RDWR);
    changed_.notify_all();
  }
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  for (std::thread& thread : threads_) thread.join();
  for (const int descriptor : descriptors_) {
    if (descriptor >= 0) ::close(descriptor);
  }
  ::close(listener_);
}

void FakeEngine::end_process() {
  ::shutdown(listener_, SHUT_RDWR);  // which on Linux refuses from now on
  const linger at_once{1, 0};
  const std::lock_guard lock(mutex_);
  for (const int descriptor : descriptors_) {
    if (descriptor < 0) continue;
    ::setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ::shutdown(descriptor, SHUT_RDWR);
  }
}

void FakeEngine::accept_loop() {
  while (true) {
    const int descriptor = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (descriptor < 0 && errno == EMFILE) {
      // Linux takes the descriptor before it waits for a connection, so that a test which leaves the
      // process none (NoDescriptors) is met here by an engine that has just started.
      ::poll(nullptr, 0, kAcceptPause);
      continue;
    }
    const std::lock_guard lock(mutex_);
    if (descriptor >= 0) descriptors_.push_back(descriptor);
    if (descriptor < 0 || ending_) return;
    const timeval patience{kEngineTimeout.count(), 0};
    ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    const int at_once = 1;
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    threads_.emplace_back(&FakeEngine::serve, this, descriptor, descriptors_.size() - 1);
    changed_.notify_all();
  }
}

void FakeEngine::serve(int descriptor, std::size_t connection) {
  FakePeer peer(*this, descriptor, connection);
  script_(peer);
  const std::lock_guard lock(mutex_);
  descriptors_[connection] = -1;
  ::close(descriptor);
}

void FakeEngine::proceed() {
  const std::lock_guard lock(mutex_);
  ++allowed_to_proceed_;
  changed_.notify_all();
}

std::vector<SeenRequest> FakeEngine::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

std::vector<SeenRequest> FakeEngine::aborts() const {
  const std::lock_guard lock(mutex_);
  return aborts_;
}

bool FakeEngine::wait_for_aborts(std::size_t count) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kEngineTimeout, [&] { return aborts_.size() >= count; });
}

std::size_t FakeEngine::connections() const {
  const std::lock_guard lock(mutex_);
  return descriptors_.size();
}

std::size_t FakeEngine::drops() const {
  const std::lock_guard lock(mutex_);
  return drops_;
}

std::size_t FakeEngine::pauses() const {
  const std::lock_guard lock(mutex_);
  return pauses_;
}

bool FakeEngine::wait_for_requests(std::size_t count) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kEngineTimeout, [&] { return requests_.size() >= count; });
}

bool FakeEngine::wait_for_drops(std::size_t count) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kEngineTimeout, [&] { return drops_ >= count; });
}

FakeEngine::Script always(std::string response) {
  return [response = std::move(response)](FakePeer& peer) {
    while (peer.read_request()) peer.write(response);
  };
}

FakeEngine::Script by_path(std::map<std::string, std::string, std::less<>> responses) {
  return [responses = std::move(responses)](FakePeer& peer) {
    while (const auto request = peer.read_request()) {
      const auto begin = request->head.find(' ') + 1;
      const auto found =
          responses.find(request->head.substr(begin, request->head.find(' ', begin) - begin));
      peer.write(found == responses.end() ? response(404, "{}") : found->second);
    }
  };
}

std::string response(int status, std::string_view body, std::string_view extra_headers) {
  return fmt::format("HTTP/1.1 {} Status\r\n{}Content-Length: {}\r\n\r\n{}", status, extra_headers,
                     body.size(), body);
}

model::Endpoint closed_endpoint() {
  std::uint16_t port = 0;
  ::close(open_listener(port));
  return {"127.0.0.1", port};
}

}  // namespace baton::test
