// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "core/error.h"
#include "wire/http_message.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace baton::wire {

enum class ParseStatus {
  NeedMore,  // everything given was consumed; the message goes on
  HeadDone,  // the head is complete; returned once per message, before any body byte
  Done,      // the message is complete; bytes not consumed belong to the next one
  Failed,    // error() says why; the connection cannot be used further
};

struct HttpLimits {
  std::size_t header_bytes;
  std::size_t body_bytes;
};

// Role. Reads HTTP/1 requests off a connection, one after the other, as strictly as a proxy must:
//   conflicting or repeated lengths, a length beside chunking, unknown transfer codings, folded
//   header lines, bare CR or LF, NUL and white space before the colon are refused, so no two
//   parsers in a row can disagree about where a request ends.
// Confinement. One thread.
// Lifetime. Owned by a session, reused for each of its requests.
// Invariants. Holds at most header_bytes of an unfinished head and body_bytes of body. What it
//   reports depends on the bytes alone, never on how they were cut into calls.
class RequestParser {
 public:
  explicit RequestParser(HttpLimits limits);
  ~RequestParser();
  RequestParser(RequestParser&&) noexcept;
  RequestParser& operator=(RequestParser&&) noexcept;

  struct Progress {
    std::size_t consumed;
    ParseStatus status;
  };
  // Stops after HeadDone and Done without looking at what follows. Empty input is allowed: a
  // request without a body is Done at the first call after HeadDone.
  Progress feed(std::string_view bytes);

  RequestHead& head();
  const RequestHead& head() const;
  std::string& body();
  const Error& error() const;  // InvalidRequest, HeadersTooLarge (431) or PayloadTooLarge (413)
  // No byte of a next request was seen yet. Blank lines in front of one are no part of it.
  bool idle() const;
  // Forgets the finished request, gives its memory back, is ready for the following one.
  void next();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Role. Reads one HTTP/1 response at a time. Body bytes are decoded in place: chunk framing is
//   squeezed out of the caller's buffer, so what is relayed is never copied out of it and memory
//   per stream does not grow with the answer.
// Confinement. One thread.
// Lifetime. Owned by an upstream connection, reused for each of its responses.
// Invariants. What it reports depends on the bytes alone, never on how they were cut into calls.
class ResponseParser {
 public:
  explicit ResponseParser(std::size_t header_bytes);
  ~ResponseParser();
  ResponseParser(ResponseParser&&) noexcept;
  ResponseParser& operator=(ResponseParser&&) noexcept;

  struct Progress {
    std::size_t consumed;  // of the bytes given
    ParseStatus status;
    std::string_view body;  // decoded body bytes, contiguous, inside the bytes given
  };
  // 1xx responses are skipped. After HeadDone call again with the rest. A call may return body
  // together with Done, and with Failed the bytes before the fault.
  Progress feed(std::span<char> bytes);
  // The peer closed. Done where the message ends by that (no length, not chunked), Failed where it
  // was cut off.
  ParseStatus finish();

  ResponseHead& head();
  const Error& error() const;  // EngineProtocol
  bool head_done() const;
  void next();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::wire
