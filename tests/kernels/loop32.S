; Multiplies 32 by 32 bits by operand scanning in two counted loops; the counters are public.
; void mul32(uint8_t *r, const uint8_t *a, const uint8_t *b)
.global mul32
mul32:
    push r28
    push r29
    movw r26, r22           ; X walks over a, Y over b, Z over the result
    movw r28, r20
    movw r30, r24
    clr  r22                ; always zero
    st   Z, r22             ; the first row adds to zero
    std  Z+1, r22
    std  Z+2, r22
    std  Z+3, r22
    ldi  r24, 4
row:
    ld   r18, X+
    clr  r19                ; the carry limb of the row
    ldi  r25, 4
cell:
    ld   r20, Y+
    mul  r18, r20
    add  r0, r19            ; at most 0xfe01 + 0xff
    adc  r1, r22
    ld   r21, Z
    add  r0, r21            ; at most 0xffff
    adc  r1, r22
    st   Z+, r0
    mov  r19, r1
    dec  r25
    brne cell
    st   Z, r19
    sbiw r28, 4
    sbiw r30, 3
    dec  r24
    brne row
    clr  r1
    pop  r29
    pop  r28
    ret
