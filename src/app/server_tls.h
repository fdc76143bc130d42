// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include "config/config.h"
#include "core/published.h"
#include "core/result.h"
#include "net/file_watch.h"
#include "telemetry/log.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>

#include <memory>

namespace baton::app {

// Role. The client listener's TLS. Its certificate follows its files: connections opened after a
//   replacement get the new one; open connections keep theirs.
// Confinement. The control thread, whose io_context it is given; context() is for handshakes of any
//   thread.
// Lifetime. Outlives the listeners.
// Invariants. An unusable certificate, or one whose key does not match, replaces none.
class ServerTls {
 public:
  static Result<std::unique_ptr<ServerTls>> load(boost::asio::io_context& io,
                                                 const config::Tls& files, telemetry::Logger& log);
  ServerTls(const ServerTls&) = delete;
  ServerTls& operator=(const ServerTls&) = delete;

  boost::asio::ssl::context& context() { return context_; }
  // Reads the files again, now and whenever they change.
  void follow();
  void reload();
  void stop();

 private:
  // Immutable once it is published.
  using Certificate = std::shared_ptr<boost::asio::ssl::context>;

  ServerTls(boost::asio::io_context& io, const config::Tls& files, telemetry::Logger& log);
  static Result<Certificate> read(const config::Tls& files);
  static int show_certificate(SSL* connection, void* self);

  config::Tls files_;
  telemetry::Logger& log_;
  boost::asio::ssl::context context_{boost::asio::ssl::context::tls_server};
  Published<Certificate> certificate_;
  net::FileWatch certificate_watch_;
  net::FileWatch key_watch_;
};

}  // namespace baton::app
