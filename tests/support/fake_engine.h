// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "model/worker.h"

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace baton::test {

// One request as it arrived, byte for byte.
struct SeenRequest {
  std::string head;  // with its closing blank line
  std::string body;
  std::size_t connection = 0;  // 0 for the first one accepted
};

class FakeEngine;

// Role. The far side of one connection, driven by blocking calls; none of them blocks longer than a
//   few seconds, so a mistake ends as a failed test.
// Confinement. The thread of its connection.
class FakePeer {
 public:
  // nullopt where the other side closed first. What aborts another request is answered here, and
  // only FakeEngine::aborts() tells of it.
  std::optional<SeenRequest> read_request();
  void write(std::string_view bytes);
  void close();
  void reset();
  // As when its process ends: all connections are reset, and the port refuses new ones.
  void end_process();
  // Reads and forgets until the other side closes, and counts that as a drop.
  void wait_for_drop();
  // Writes these bytes again and again, a few milliseconds apart, until the other side closes, and
  // counts that as a drop. Returns without one where it is not left for a few seconds.
  void drip(std::string_view bytes);
  // Returns when the test calls FakeEngine::proceed(), once for each call.
  void wait_for_proceed();

 private:
  friend class FakeEngine;
  FakePeer(FakeEngine& engine, int descriptor, std::size_t connection)
      : engine_(engine), descriptor_(descriptor), connection_(connection) {}

  FakeEngine& engine_;
  int descriptor_;
  std::size_t connection_;
  std::string ahead_;
  bool only_aborts_ = false;  // so far
};

// Role. A server on a port of its own whose every byte the test decides: `script` runs for each
//   connection, on a thread of that connection, and the connection closes when it returns.
// Confinement. Made and ended by the test's thread; what it has seen can be asked from there.
class FakeEngine {
 public:
  using Script = std::function<void(FakePeer&)>;

  explicit FakeEngine(Script script);
  ~FakeEngine();
  FakeEngine(const FakeEngine&) = delete;
  FakeEngine& operator=(const FakeEngine&) = delete;

  model::Endpoint endpoint() const { return {"127.0.0.1", port_}; }
  void proceed();

  std::vector<SeenRequest> requests() const;
  std::vector<SeenRequest> aborts() const;
  bool wait_for_aborts(std::size_t count) const;
  std::size_t connections() const;
  // Wait for something that is certain to come; false where it did not within a few seconds.
  bool wait_for_requests(std::size_t count) const;
  bool wait_for_drops(std::size_t count) const;
  std::size_t drops() const;
  // How often a peer has come to wait_for_proceed().
  std::size_t pauses() const;

 private:
  friend class FakePeer;
  void accept_loop();
  void serve(int descriptor, std::size_t connection);
  void end_process();

  Script script_;
  std::uint16_t port_ = 0;
  int listener_ = -1;  // after the port, which opening it fills in
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool ending_ = false;
  std::size_t allowed_to_proceed_ = 0;
  std::size_t drops_ = 0;
  std::size_t pauses_ = 0;
  std::vector<SeenRequest> requests_;
  std::vector<SeenRequest> aborts_;
  std::vector<int> descriptors_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

// Answers each request of a connection with the same bytes.
FakeEngine::Script always(std::string response);
// Answers each request of a connection by its path, and those for other paths with 404.
FakeEngine::Script by_path(std::map<std::string, std::string, std::less<>> responses);
// An HTTP response with its length.
std::string response(int status, std::string_view body, std::string_view extra_headers = "");
// A port nobody listens on.
model::Endpoint closed_endpoint();

}  // namespace baton::test
