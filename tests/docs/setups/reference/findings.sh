# A quota that is probably not what was meant.
printf '\n  - user: "User:bob"\n    limits: {producer_byte_rate: 10}\n' >> desired_state/demo/search.yaml
