// SPDX-License-Identifier: Apache-2.0
// SPDX-FileCopyrightText: The Baton authors
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstddef>
#include <memory>
#include <string>

namespace baton::test {

// A certificate that is its own authority, and its key, as PEM. `names` are the hosts that it is
// for, as OpenSSL writes them.
struct Certificate {
  explicit Certificate(const std::string& subject, const std::string& names = {}) {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> pair(EVP_EC_gen("P-256"),
                                                                   EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> made(X509_new(), X509_free);
    X509_set_version(made.get(), 2);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), 3600);
    X509_set_pubkey(made.get(), pair.get());
    X509_NAME* const name = X509_get_subject_name(made.get());
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(subject.c_str()), -1, -1, 0);
    X509_set_issuer_name(made.get(), name);
    if (!names.empty()) {
      X509_EXTENSION* const extension =
          X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names.c_str());
      X509_add_ext(made.get(), extension, -1);
      X509_EXTENSION_free(extension);
    }
    X509_sign(made.get(), pair.get(), EVP_sha256());
    certificate = text([&](BIO* out) { PEM_write_bio_X509(out, made.get()); });
    key = text([&](BIO* out) {
      PEM_write_bio_PrivateKey(out, pair.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
  }

  std::string certificate;
  std::string key;

 private:
  template <class Write>
  static std::string text(Write write) {
    const std::unique_ptr<BIO, decltype(&BIO_free)> memory(BIO_new(BIO_s_mem()), BIO_free);
    write(memory.get());
    char* data = nullptr;
    const long size = BIO_get_mem_data(memory.get(), &data);
    return {data, static_cast<std::size_t>(size)};
  }
};

}  // namespace baton::test
