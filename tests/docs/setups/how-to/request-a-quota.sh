# The entry of the page.
cat > desired_state/demo/fraud.yaml <<end
owner: fraud
quotas:
  - user: fraud-scorer
    limits:
      consumer_byte_rate: 30 MiB
      producer_byte_rate: 10 MiB
    reason: scores each payment within a second
end

# before: 4. After the merge
git add . && git commit -qm 'Quotas of the fraud scorer'
quota-ops reconcile demo --allow default_touched --reason 'scores each payment'
